import { describe, expect, it } from 'vitest';
import { GREEDY, type SamplingParams } from '../../../src/core/sampling-params.ts';
import { processedDistribution } from '../../../src/sampling/processed-distribution.ts';
import { sampleToken } from '../../../src/sampling/sample-token.ts';

const LOGITS = Float32Array.of(1.5, -0.5, 0.25, 2, -3, 0.25, 1);
const SAMPLED: SamplingParams = { temperature: 1, topP: 1, topK: 0, minP: 0, seed: 7n };
/** The 1e-6 quantiles of chi-square with 1..6 degrees of freedom. */
const CHI_SQUARE_LIMITS = [Number.NaN, 23.9, 27.6, 30.7, 33.4, 35.9, 38.3];

describe('sampleToken', () => {
  it('is greedy at temperature 0, with the smallest id among equals', () => {
    expect(sampleToken(Float32Array.of(0, 4, 4), GREEDY, 3)).toBe(1);
  });

  it.each<[string, Partial<SamplingParams>]>([
    ['temperature 1', {}],
    ['temperature 0.5', { temperature: 0.5 }],
    ['top-k', { topK: 3 }],
    ['top-p', { topP: 0.8 }],
    ['min-p', { minP: 0.15 }],
    ['another seed', { seed: 123_456_789_012_345n }],
  ])('draws from the processed distribution: %s', (_, change) => {
    const params = { ...SAMPLED, ...change };
    const draws = 40_000;
    const counts = new Array<number>(LOGITS.length).fill(0);
    for (let position = 0; position < draws; position++) counts[sampleToken(LOGITS, params, position)]! += 1;

    const { ids, probabilities } = processedDistribution(LOGITS, params);
    let chiSquare = 0;
    let inside = 0;
    ids.forEach((id, index) => {
      const expected = probabilities[index]! * draws;
      chiSquare += (counts[id]! - expected) ** 2 / expected;
      inside += counts[id]!;
    });
    expect(inside).toBe(draws);
    expect(chiSquare).toBeLessThan(CHI_SQUARE_LIMITS[ids.length - 1]!);
  });

  it('draws from the distribution over seeds at one position, too', () => {
    const draws = 40_000;
    let hits = 0;
    for (let seed = 0n; seed < draws; seed++) if (sampleToken(LOGITS, { ...SAMPLED, seed }, 5) === 3) hits++;
    const probability = processedDistribution(LOGITS, SAMPLED).probabilities[3]!;
    expect(Math.abs(hits / draws - probability)).toBeLessThan(5 * Math.sqrt((probability * (1 - probability)) / draws));
  });

  it('depends on nothing but seed, position and logits', () => {
    const draw = (position: number) => sampleToken(LOGITS, SAMPLED, position);
    const forward = [10, 11, 12, 13].map(draw);
    expect([13, 12, 11, 10].map(draw)).toEqual(forward.toReversed());
  });

  it('never draws a token whose probability underflows to 0', () => {
    const logits = Float32Array.of(-1e30, 0, -1e30);
    for (let position = 0; position < 200; position++) expect(sampleToken(logits, SAMPLED, position)).toBe(1);
  });

  it.each([GREEDY, SAMPLED])('refuses NaN at temperature $temperature', (params) => {
    expect(() => sampleToken(Float32Array.of(1, Number.NaN), params, 0)).toThrow(
      expect.objectContaining({ code: 'internal', message: expect.stringContaining('NaN at id 1 of 2') }),
    );
  });
});
