import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CounterRng } from '../../../src/sampling/counter-rng.ts';
import { processedDistribution } from '../../../src/sampling/processed-distribution.ts';

type Cuts = Parameters<typeof processedDistribution>[1];
const PLAIN: Cuts = { temperature: 1, topP: 1, topK: 0, minP: 0 };

/** The definition, by a full sort. */
function bySorting(logits: Float32Array, { temperature, topP, topK, minP }: Cuts): Map<number, number> {
  const ranked = [...logits.keys()].filter((id) => logits[id]! > -Infinity);
  ranked.sort((left, right) => logits[right]! - logits[left]! || left - right);
  const largest = logits[ranked[0]!]!;
  const weight = (id: number) => Math.exp((logits[id]! - largest) / temperature);
  const total = (ids: readonly number[]) => ids.reduce((sum, id) => sum + weight(id), 0);

  let kept = ranked.filter((id) => minP === 0 || logits[id]! >= largest + temperature * Math.log(minP));
  if (topK > 0 && topK < kept.length) kept = kept.filter((id) => logits[id]! >= logits[kept[topK - 1]!]!);
  if (topP < 1) {
    const limit = topP * total(kept);
    let before = 0;
    kept = kept.filter((id, rank) => {
      const keep = rank === 0 || before < limit;
      before += weight(id);
      return keep;
    });
  }
  const sum = total(kept);
  return new Map(kept.map((id) => [id, weight(id) / sum]));
}

function expectSame(logits: Float32Array, cuts: Cuts): void {
  const { ids, probabilities } = processedDistribution(logits, cuts);
  const expected = bySorting(logits, cuts);
  expect([...ids]).toEqual([...expected.keys()].sort((left, right) => left - right));
  ids.forEach((id, index) => {
    expect(probabilities[index]).toBeCloseTo(expected.get(id)!, 12);
  });
}

describe('processedDistribution', () => {
  it('agrees with a full sort on rows with ties and masked ids', () => {
    const logit = fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: -40, max: 40 }).map((steps) => steps / 4) },
      { weight: 1, arbitrary: fc.constant(-Infinity) },
    );
    const cuts = fc.record({
      temperature: fc.constantFrom(0.01, 0.7, 1, 30),
      // Values that no sum of few equal weights meets: there rounding would decide.
      topP: fc.constantFrom(0, 0.123_457, 0.543_21, 0.912_345, 1),
      topK: fc.nat({ max: 30 }),
      minP: fc.constantFrom(0, 0.051, 0.333, 1),
    });
    fc.assert(
      fc.property(fc.array(logit, { minLength: 1, maxLength: 60 }), cuts, (row, params) => {
        fc.pre(row.some((value) => value > -Infinity));
        expectSame(Float32Array.from(row), params);
      }),
      { numRuns: 500 },
    );
  });

  it.each<[string, Partial<Cuts>]>([
    ['temperature', { temperature: 0.6 }],
    ['top-p', { topP: 0.95 }],
    ['top-p at a high temperature', { topP: 0.9, temperature: 50 }],
    ['top-k', { topK: 1000 }],
    ['all of them', { temperature: 0.8, topP: 0.97, topK: 500, minP: 0.0001 }],
  ])('agrees with a full sort at 20 000 ids: %s', (_, cuts) => {
    const rng = new CounterRng(11n);
    const logits = Float32Array.from(
      { length: 20_000 },
      (_value, id) => (rng.uniform(id) + rng.uniform(id, 1) - rng.uniform(id, 2)) * 9,
    );
    expectSame(logits, { ...PLAIN, ...cuts });
  });

  it('keeps the smaller id where top-p cuts through equals', () => {
    expect([...processedDistribution(Float32Array.of(0, 0, 0, 0), { ...PLAIN, topP: 0.4 }).ids]).toEqual([0, 1]);
  });

  it('keeps one id at top-p 0', () => {
    expect([...processedDistribution(Float32Array.of(0, 2, 1), { ...PLAIN, topP: 0 }).ids]).toEqual([1]);
  });

  it('does not overflow when it is very cold', () => {
    const { ids, probabilities } = processedDistribution(Float32Array.of(3e38, -3e38, 3e38), {
      ...PLAIN,
      temperature: 1e-300,
      topP: 0.9,
    });
    expect([...ids]).toEqual([0, 2]);
    expect([...probabilities]).toEqual([0.5, 0.5]);
  });

  it('leaves out ids masked by -Infinity', () => {
    expect([...processedDistribution(Float32Array.of(-Infinity, 1, -Infinity), PLAIN).ids]).toEqual([1]);
  });

  it.each([
    ['NaN', [1, Number.NaN]],
    ['+Infinity', [1, Number.POSITIVE_INFINITY]],
  ])('refuses %s', (name, logits) => {
    expect(() => processedDistribution(Float32Array.from(logits), PLAIN)).toThrow(
      expect.objectContaining({ code: 'internal', message: expect.stringContaining(name) }),
    );
  });
});
