import { describe, expect, it } from 'vitest';
import { GREEDY } from '../../../../src/core/sampling-params.ts';
import { AutoLength } from '../../../../src/decode/draft-length/auto-length.ts';
import { CostModel } from '../../../../src/decode/draft-length/cost-model.ts';
import type { Sequence } from '../../../../src/decode/sequence.ts';

/** A policy sees of a sequence only how it is sampled; the object itself tells it from others. */
const sequence = () => ({ sampling: GREEDY }) as unknown as Sequence;
const ALONE = { decoding: 1 };
const costs = (slope = 1, drafts = [{ rows: 1, ms: 1 }]) =>
  new CostModel(
    [
      { rows: 1, ms: 10 },
      { rows: 9, ms: 10 + 8 * slope },
    ],
    drafts,
  );
const draftOf = (...probabilities: number[]) => ({ tokens: probabilities.map((_, i) => i), probabilities });

/** Rounds in which `accepts` says how many of each draft are accepted; the lengths verified. */
function run(policy: AutoLength, one: Sequence, rounds: number, accepts: number, probabilities: readonly number[]): number[] {
  return Array.from({ length: rounds }, () => {
    const [asked] = policy.ask([{ sequence: one, budget: probabilities.length, waiting: 1 }], ALONE);
    const proposal = draftOf(...probabilities.slice(0, asked?.tokens));
    const [kept] = policy.trim([{ sequence: one, proposal }], ALONE, asked?.tokens === 0 ? 0 : 1);
    const drafted = kept?.tokens ?? 0;
    const accepted = Math.min(accepts, drafted);
    const round = { drafted, evaluated: Math.min(accepted + 1, drafted), accepted, emitted: accepted + 1 };
    policy.learn([{ sequence: one, proposal, round }]);
    policy.learnStep(1 + drafted, 1, 10 + drafted);
    return drafted;
  });
}

describe('draft lengths by expected gain', () => {
  it('are long where drafts are accepted', () => {
    const lengths = run(new AutoLength(costs()), sequence(), 60, 4, [0.9, 0.9, 0.9, 0.9]);
    expect(lengths.slice(-20).every((length) => length === 4)).toBe(true);
  });

  it('come down to what is accepted', () => {
    const lengths = run(new AutoLength(costs(2)), sequence(), 200, 1, [0.9, 0.9, 0.9, 0.9]);
    expect(lengths.slice(-40).filter((length) => length > 0 && length !== 1)).toEqual([]);
    expect(lengths.slice(-40)).toContain(1);
  });

  it('are none where nothing is accepted, with a probe now and then that finds out when that changes', () => {
    const policy = new AutoLength(costs());
    const one = sequence();
    run(policy, one, 200, 0, [0.3, 0.3, 0.3]);
    const asked = Array.from({ length: 400 }, () => {
      const [limit] = policy.ask([{ sequence: one, budget: 3, waiting: 1 }], ALONE);
      return limit?.tokens === 0 ? limit.reason : 'probe';
    });
    expect(asked.filter((answer) => answer === 'probe').length).toBeGreaterThanOrEqual(1);
    expect(asked).toContain('low-acceptance');
    const lengths = run(policy, one, 600, 3, [0.95, 0.95, 0.95]);
    expect(lengths.slice(-50).filter((length) => length === 3).length).toBeGreaterThan(40);
  });

  it('are shorter when many sequences share the step, and say so', () => {
    const policy = new AutoLength(
      new CostModel(
        [
          { rows: 1, ms: 10 },
          { rows: 4, ms: 10.1 },
          { rows: 16, ms: 100 },
        ],
        [{ rows: 1, ms: 0.1 }],
      ),
    );
    const alone = policy.trim([{ sequence: sequence(), proposal: draftOf(0.8, 0.8) }], ALONE, 0.1);
    expect(alone).toEqual([{ tokens: 2, reason: null }]);
    const crowd = Array.from({ length: 8 }, () => ({ sequence: sequence(), proposal: draftOf(0.8, 0.8) }));
    const together = policy.trim(crowd, { decoding: 8 }, 0.1);
    expect(together.map(({ tokens }) => tokens)).toEqual(crowd.map(() => 0));
    expect(new Set(together.map(({ reason }) => reason))).toEqual(new Set(['load']));
  });

  it('are drafted for those only whom drafts serve', () => {
    const policy = new AutoLength(
      costs(1, [
        { rows: 1, ms: 1 },
        { rows: 5, ms: 5 },
      ]),
    );
    const good = sequence();
    const bad = sequence();
    const step = { decoding: 2 };
    let badDrafts = 0;
    let goodDrafts = 0;
    for (let round = 0; round < 700; round++) {
      const asked = policy.ask(
        [good, bad].map((one) => ({ sequence: one, budget: 2, waiting: 1 })),
        step,
      );
      const proposals = asked.map(({ tokens }, i) => draftOf(...Array.from({ length: tokens }, () => (i === 0 ? 0.95 : 0.05))));
      const drafts = [good, bad].map((one, i) => ({ sequence: one, proposal: proposals[i]! }));
      const kept = policy.trim(
        drafts,
        step,
        asked.reduce((sum, { tokens }) => sum + tokens, 0),
      );
      if (round >= 500 && asked[0]!.tokens > 0) goodDrafts++;
      if (round >= 500 && asked[1]!.tokens > 0) badDrafts++;
      policy.learn(
        drafts.map((draft, i) => {
          const drafted = kept[i]!.tokens;
          const accepted = i === 0 ? drafted : 0;
          return { ...draft, round: { drafted, evaluated: Math.min(accepted + 1, drafted), accepted, emitted: accepted + 1 } };
        }),
      );
    }
    expect(goodDrafts).toBe(200);
    expect(badDrafts).toBeGreaterThan(0);
    expect(badDrafts).toBeLessThan(70);
  });

  it('leave a budget of nothing as it is', () => {
    expect(new AutoLength(costs()).ask([{ sequence: sequence(), budget: 0, waiting: 0 }], ALONE)).toEqual([
      { tokens: 0, reason: null },
    ]);
  });
});
