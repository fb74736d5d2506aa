import { describe, expect, it } from 'vitest';
import { CostModel } from '../../../../src/decode/draft-length/cost-model.ts';
import type { TimedAnswer } from '../../../../src/validate/measure/speed-pass.ts';
import { ObservedCosts, type ObservedStep } from '../../../../src/validate/report/observed-costs.ts';
import { speedReport } from '../../../../src/validate/report/speed-report.ts';
import { anchors, served } from './measured-answers.ts';

const DRAFT = 4;
const PLAIN: ObservedStep = { decodeRows: 1, durationMs: 10, draftMs: 0 };
const SPECULATIVE: ObservedStep = { decodeRows: 1 + DRAFT, durationMs: 16, draftMs: 4 };

/** An idle machine, which is twice as fast as in the measurement. */
function before() {
  return new CostModel(
    [
      { rows: 1, ms: 5 },
      { rows: 3, ms: 7 },
      { rows: 5, ms: 8 },
    ],
    [
      { rows: 1, ms: 1.5 },
      { rows: DRAFT, ms: 2 },
    ],
  );
}

function times(count: number, step: ObservedStep, slower = 1): ObservedStep[] {
  const { decodeRows, durationMs, draftMs } = step;
  return Array.from({ length: count }, () => ({ decodeRows, durationMs: slower * durationMs, draftMs: slower * draftMs }));
}

/** Twelve tokens behind the first anchor, and behind each a draft of which two tokens are right. */
const TOKENS = Array.from({ length: 13 }, (_, i) => i);
const FORCED = [{ tokens: TOKENS, anchors: anchors(TOKENS.slice(0, 12).map((at) => [at + 1, at + 2, 99, 99])) }];

function report(steps: readonly ObservedStep[], forced = FORCED, answers: readonly TimedAnswer[] = []) {
  const plainMs = steps.filter(({ decodeRows }) => decodeRows === 1).reduce((sum, { durationMs }) => sum + durationMs, 0);
  const speculativeMs = steps
    .filter(({ decodeRows }) => decodeRows > 1)
    .reduce((sum, { durationMs, draftMs }) => sum + durationMs + draftMs, 0);
  return speedReport({
    samples: [{ id: 'a', plainMs, speculativeMs, tokens: 12, answers, differsAt: null }],
    steps,
    repeats: 1,
    temperature: 0,
    served: [served(), served({ id: 'not timed', category: 'y' })],
    costs: before(),
    forced,
    maxDraftTokens: DRAFT,
    seed: 0,
  });
}

describe('the predicted speed-up', () => {
  it('is AL · c(1) / (d + c(1 + n)) by the costs of the measurement', () => {
    const { byDraftLength, stepMs, draftMs, plainTokensPerSecond } = report([...times(12, PLAIN), ...times(4, SPECULATIVE)]);
    expect(stepMs.map(({ ms }) => ms)).toEqual([10, 12, 14, 15, 16]);
    expect(draftMs).toBeCloseTo(4, 9);
    expect(plainTokensPerSecond).toBeCloseTo(100, 9);
    const whole = byDraftLength[DRAFT - 1];
    expect(whole?.acceptanceLength).toBe(3);
    expect(whole?.roundMs).toBeCloseTo(20, 9);
    expect(whole?.breakEven).toBeCloseTo(2, 9);
    expect(whole?.speedUp).toBeCloseTo(1.5, 9);
    // One token: AL 2, a draft of 3 ms and a step of 12.
    expect(byDraftLength[0]?.speedUp).toBeCloseTo((2 * 10) / 15, 9);
  });

  it('agrees with the measured one where the machine was busy for the last steps only', () => {
    const steps = [...times(60, PLAIN), ...times(20, SPECULATIVE, 1), ...times(12, PLAIN, 5), ...times(4, SPECULATIVE, 5)];
    const { byDraftLength, speedUp } = report(steps);
    expect(byDraftLength[DRAFT - 1]?.speedUp).toBeCloseTo(speedUp.value as number, 9);
  });

  it('charges rounds without a draft as plain ones', () => {
    const silent = [{ tokens: TOKENS, anchors: anchors(TOKENS.slice(0, 12).map(() => [])) }];
    const { byDraftLength, bestDraftTokens } = report([...times(12, PLAIN), ...times(4, SPECULATIVE)], silent);
    for (const { speedUp } of byDraftLength) expect(speedUp).toBeCloseTo(1, 9);
    expect(bestDraftTokens).toBe(0);
  });
});

describe('observed costs', () => {
  it('are shared by rows where the curve of before came out level', () => {
    const level = new CostModel(
      [
        { rows: 1, ms: 50 },
        { rows: 5, ms: 20 },
      ],
      [{ rows: 1, ms: 2 }],
    );
    const costs = new ObservedCosts(level, [...times(12, PLAIN), ...times(4, SPECULATIVE)]);
    expect([1, 3, 5].map((rows) => costs.stepMs(rows))).toEqual([10, 13, 16]);
  });

  it('are those of before where nothing was observed', () => {
    const costs = new ObservedCosts(before(), []);
    expect([costs.stepMs(1), costs.stepMs(5)]).toEqual([5, 8]);
    expect(costs.draftMs(DRAFT)).toBeCloseTo(2, 9);
  });
});

it('has the medians of timed answers by category, with the acceptance of their prompts', () => {
  const answer = (firstTokenMs: number, ms: number, tokens: number): TimedAnswer => ({
    firstTokenMs,
    ms,
    tokens: Array.from({ length: tokens }, () => 1),
  });
  const answers = [answer(100, 400, 5), answer(200, 300, 4), answer(50, 0, 1)];
  const { byCategory, temperature } = report([...times(12, PLAIN), ...times(4, SPECULATIVE)], FORCED, answers);
  expect(temperature).toBe(0);
  expect(Object.keys(byCategory)).toEqual(['x']);
  expect(byCategory['x']).toMatchObject({
    answers: 3,
    tokens: 10,
    medianLatencyMs: 500,
    medianFirstTokenMs: 100,
    // An answer of one token has no time between two.
    medianInterTokenMs: 100,
    medianTokensPerSecond: 10,
    acceptance: { prompts: 1 },
  });
});
