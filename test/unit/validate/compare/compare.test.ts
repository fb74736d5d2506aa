import { describe, expect, it } from 'vitest';
import { comparePairs } from '../../../../src/validate/compare/compare.ts';
import { pairedDifference } from '../../../../src/validate/compare/paired-difference.ts';
import { verdictOf } from '../../../../src/validate/compare/verdict-words.ts';
import { forcedRun } from '../../../../src/validate/report/forced-walk.ts';
import { anchors, forced } from '../report/measured-answers.ts';

const LENGTH = 12;
const TOKENS = Array.from({ length: LENGTH }, (_, i) => i + 1);

/** Drafts of two tokens behind each token, with so many right slots behind anchor i. */
function drafts(right: (anchor: number) => number) {
  return anchors(
    TOKENS.slice(0, -1).map((_, anchor) => [0, 1].map((slot) => (slot < right(anchor) ? TOKENS[anchor + 1 + slot]! : 99))),
  );
}

const ANSWERS = Array.from({ length: 20 }, (_, i) =>
  forced({
    id: `p${i}`,
    category: i % 2 === 0 ? 'even' : 'odd',
    tokens: TOKENS,
    anchors: {
      some: drafts((anchor) => ((anchor + i) % 3 === 0 ? 1 : 0)),
      more: drafts((anchor) => ((anchor + i) % 3 === 0 ? 2 : 1)),
      same: drafts((anchor) => ((anchor + i) % 3 === 0 ? 1 : 0)),
      other: drafts((anchor) => ((anchor + i) % 3 === 1 ? 1 : 0)),
    },
  }),
);
const MEMBERS = ['some', 'more', 'same', 'other'].map((name) => ({ name, maxDraftTokens: 2 }));

describe('drafters on the same prefixes', () => {
  const pairs = comparePairs(ANSWERS, MEMBERS, 0, 0.05);

  it('are compared with the first one each, with a verdict', () => {
    expect(pairs.map(({ a, b, verdict }) => [a, b, verdict])).toEqual([
      ['some', 'more', 'better'],
      ['some', 'same', 'equivalent'],
      ['some', 'other', 'undecided'],
    ]);
    expect(comparePairs(ANSWERS, [...MEMBERS.slice(0, 2)].reverse(), 0, 0.05)[0]?.verdict).toBe('worse');
  });

  it('are paired by anchor and by prompt', () => {
    const [better, same] = pairs;
    // Behind the last anchor of an answer there is one slot only, which six answers have right either way.
    expect(better?.anchors).toEqual({ longer: 214, equal: 6, shorter: 0 });
    expect(better?.prompts).toEqual({ higher: 20, equal: 0, lower: 0 });
    expect(better?.streak.value).toBeCloseTo(214 / 220, 12);
    expect(same?.acceptanceLength).toEqual({ value: 0, low: 0, high: 0 });
    expect(same?.p).toBe(1);
  });

  it('differ by category and slot, too', () => {
    const [better] = pairs;
    expect(Object.keys(better?.acceptanceByCategory ?? {})).toEqual(['even', 'odd']);
    expect(better?.accuracyBySlot[0]?.value).toBeCloseTo(2 / 3, 1);
  });

  it('are compared slot by slot at the same places, where one of them drafts seldom', () => {
    const seldom = TOKENS.slice(0, -1).map((_, anchor) => (anchor === 0 ? [TOKENS[1]!] : []));
    const often = TOKENS.slice(0, -1).map((_, anchor) => [anchor % 2 === 0 ? TOKENS[anchor + 1]! : 99]);
    const answer = forced({ tokens: TOKENS, anchors: { seldom: anchors(seldom), often: anchors(often) } });
    const [a, b] = [forcedRun(answer, 'seldom'), forcedRun(answer, 'often')];
    const { accuracyBySlot } = pairedDifference([{ category: '', a, b }], { draftTokens: 1, seed: 0 });
    // Of what it drafts the first is always right; of eleven places it is right at one, the second at six.
    expect(accuracyBySlot[0]?.value).toBeCloseTo(5 / 11, 12);
  });

  it('have a two-sided p-value, adjusted for the number of pairs', () => {
    expect(pairs[0]?.p).toBeLessThan(1e-6);
    expect(pairs[2]?.p).toBeGreaterThan(0.05);
    expect(pairs[2]?.p).toBeLessThanOrEqual(1);
    const alone = comparePairs(ANSWERS, [MEMBERS[0]!, MEMBERS[1]!], 0, 0.05);
    expect(pairs[0]!.p / alone[0]!.p).toBeCloseTo(3, 9);
    const reversed = comparePairs(ANSWERS, [MEMBERS[1]!, MEMBERS[0]!], 0, 0.05);
    expect(reversed[0]?.p).toBeCloseTo(alone[0]!.p, 12);
  });

  it('say it in words', () => {
    expect(pairs[0]?.words).toMatch(
      /^more is better than some: \+\d\.\d\d \[.*\] tokens per round over 20 prompts, higher on 20 prompts and lower on 0\.$/,
    );
    expect(pairs[1]?.words).toMatch(/are as good/);
    expect(pairs[2]?.words).toMatch(/cannot be told apart/);
  });

  it('need more than one prompt for a verdict', () => {
    const run = (name: string) => forcedRun(ANSWERS[0]!, name);
    const difference = pairedDifference([{ category: 'x', a: run('some'), b: run('more') }], { draftTokens: 2, seed: 0 });
    expect(difference.p).toBe(1);
    expect(verdictOf(difference, difference.p, 0.05)).toBe('undecided');
  });
});

describe('a verdict', () => {
  const of = (low: number, high: number, p: number) =>
    verdictOf(
      { ...pairedDifference([], { draftTokens: 1, seed: 0 }), acceptanceLength: { value: (low + high) / 2, low, high } },
      p,
      0.05,
    );

  it('is equivalent inside the margin, however significant', () => {
    expect(of(0.01, 0.04, 0.001)).toBe('equivalent');
    expect(of(0.01, 0.06, 0.001)).toBe('better');
    expect(of(-0.06, -0.01, 0.001)).toBe('worse');
  });

  it('is undecided without significance after adjustment', () => {
    expect(of(0.1, 0.4, 0.2)).toBe('undecided');
    expect(of(-0.1, 0.4, 0.001)).toBe('undecided');
  });
});
