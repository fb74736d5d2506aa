import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SamplingParams } from '../../../src/core/sampling-params.ts';
import { CounterRng } from '../../../src/sampling/counter-rng.ts';
import { inverseCdf } from '../../../src/sampling/inverse-cdf.ts';
import { candidates, processedDistribution } from '../../../src/sampling/processed-distribution.ts';
import { quickDraw } from '../../../src/sampling/quick-draw.ts';
import { sampleToken } from '../../../src/sampling/sample-token.ts';

type Cuts = Omit<SamplingParams, 'seed'>;
const PLAIN: Cuts = { temperature: 1, topP: 1, topK: 0, minP: 0 };

const quick = (logits: Float32Array, cuts: Cuts, uniform: number) => quickDraw(candidates(logits, cuts), cuts, uniform);

/** By the whole distribution, which has tests of its own against a full sort. */
function exact(logits: Float32Array, cuts: Cuts, uniform: number): number {
  const { ids, probabilities } = processedDistribution(logits, cuts);
  return ids[inverseCdf(probabilities, uniform)]!;
}

/** As models make them: most of a vocabulary far below a few. */
function modelLike(seed: bigint, size: number): Float32Array {
  const rng = new CounterRng(seed);
  const sum = (id: number) => rng.uniform(id) + rng.uniform(id, 1) + rng.uniform(id, 2) - 1.5;
  return Float32Array.from({ length: size }, (_, id) => sum(id) * 6 + (rng.uniform(id, 3) < 20 / size ? 9 + 6 * sum(id) : 0));
}

const row = fc.oneof(
  fc
    .array(
      fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: -60, max: 60 }).map((steps) => steps / 4) },
        { weight: 2, arbitrary: fc.float({ min: -60, max: 60, noNaN: true }) },
        { weight: 1, arbitrary: fc.constant(-Infinity) },
      ),
      { minLength: 1, maxLength: 80 },
    )
    .filter((values) => values.some((value) => value > -Infinity))
    .map((values) => Float32Array.from(values)),
  fc.bigInt({ min: 0n, max: 1000n }).map((seed) => modelLike(seed, 300)),
  fc.float32Array({ noNaN: true, noDefaultInfinity: true, minLength: 1, maxLength: 20 }),
);
const cuts = fc.record({
  temperature: fc.constantFrom(1e-300, 1e-7, 0.01, 0.6, 1, 2, 1e9),
  topP: fc.oneof(fc.constantFrom(0, 1e-12, 1 - 1e-12, 1, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  topK: fc.oneof(fc.constant(0), fc.nat({ max: 60 })),
  minP: fc.constantFrom(0, 0, 0.001, 0.3, 1),
});
const uniform = fc.double({ min: 0, max: 1 - 2 ** -53, noNaN: true });
const nudge = fc.constantFrom(0, 1e-16, -1e-16, 1e-13, -1e-13, 1e-11, -1e-11, 3e-10, -3e-10, 1.5e-9, -1.5e-9, 4e-9, -4e-9);
const within = (value: number) => Math.min(Math.max(value, 0), 1 - 2 ** -53);

describe('quickDraw', () => {
  it('draws the token of the exact sums, or none', () => {
    fc.assert(
      fc.property(row, cuts, uniform, (logits, params, number) => {
        expect([null, exact(logits, params, number)]).toContain(quick(logits, params, number));
      }),
      { numRuns: 1500 },
    );
  });

  it('does so at the border between two tokens, too', () => {
    fc.assert(
      fc.property(row, cuts, fc.nat(), nudge, (logits, params, place, offset) => {
        const { probabilities } = processedDistribution(logits, params);
        const end = 1 + (place % probabilities.length);
        const number = within(probabilities.subarray(0, end).reduce((sum, probability) => sum + probability, 0) + offset);
        expect([null, exact(logits, params, number)]).toContain(quick(logits, params, number));
      }),
      { numRuns: 1500 },
    );
  });

  it('does so where top-p ends at a token', () => {
    fc.assert(
      fc.property(row, cuts, fc.nat(), nudge, uniform, (logits, { temperature }, place, offset, number) => {
        const { ids, probabilities } = processedDistribution(logits, { ...PLAIN, temperature });
        const ranked = [...ids.keys()].sort((left, right) => probabilities[right]! - probabilities[left]! || left - right);
        const before = ranked.slice(0, 1 + (place % ranked.length));
        const topP = within(before.reduce((sum, index) => sum + probabilities[index]!, 0) + offset);
        // The last token of the nucleus, whichever it is, is drawn or not.
        const params = { ...PLAIN, temperature, topP };
        for (const drawn of [number, 0.3, 0.999_999]) {
          expect([null, exact(logits, params, drawn)]).toContain(quick(logits, params, drawn));
        }
      }),
      { numRuns: 1500 },
    );
  });

  it.each<[string, Partial<Cuts>]>([
    ['nothing cut off', {}],
    ['top-p', { temperature: 0.8, topP: 0.95 }],
    ['top-k and top-p', { temperature: 0.7, topK: 20, topP: 0.8 }],
    ['min-p at a high temperature', { temperature: 1.7, minP: 0.02 }],
  ])('decides nearly all draws from a large vocabulary: %s', (_, change) => {
    const params = { ...PLAIN, ...change };
    const rows = [1n, 2n, 3n].map((seed) => modelLike(seed, 30_000));
    const rng = new CounterRng(9n);
    const draws = Array.from({ length: 150 }, (_value, i) => ({ logits: rows[i % 3]!, number: rng.uniform(i) }));
    const drawn = draws.map(({ logits, number }) => quick(logits, params, number));
    expect(drawn.filter((token) => token === null).length).toBeLessThan(3);
    for (const [i, token] of drawn.entries()) {
      if (token !== null) expect(token).toBe(exact(draws[i]!.logits, params, draws[i]!.number));
    }
  });

  it('remembers nothing of the draw before', () => {
    const params = { ...PLAIN, topP: 0.9 };
    expect(quick(Float32Array.of(0), params, 0.3)).toBe(0);
    expect(quick(Float32Array.of(0, -1), params, 0.3)).toBe(0);
  });

  it('leaves to the exact sums what rounding decides', () => {
    const halves = Float32Array.of(0, 0);
    expect(quick(halves, PLAIN, 0.5)).toBeNull();
    expect(quick(Float32Array.of(0, 50), PLAIN, 0)).toBeNull();
    expect(quick(halves, { ...PLAIN, topP: 0.5 }, 0.2)).toBeNull();
    expect(quick(halves, PLAIN, 0.5 + 1e-6)).toBe(1);
  });
});

it('sampleToken draws the token of the exact sums', () => {
  fc.assert(
    fc.property(row, cuts, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.nat(), (logits, params, seed, position) => {
      const number = new CounterRng(seed).uniform(position);
      expect(sampleToken(logits, { ...params, seed }, position)).toBe(exact(logits, params, number));
    }),
    { numRuns: 1000 },
  );
});
