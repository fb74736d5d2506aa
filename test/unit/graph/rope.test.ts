import { describe, expect, it } from 'vitest';
import { inverseFrequencies, type RopeSpec, ropeTables } from '../../../src/graph/rope.ts';

const plain: RopeSpec = { theta: 10_000, dims: 8, scaling: { type: 'default' } };

describe('inverse frequencies', () => {
  it('are the geometric series θ^(-2i/d)', () => {
    const expected = [1, 0.1, 0.01, 0.001];
    inverseFrequencies(plain).forEach((frequency, i) => {
      expect(frequency).toBeCloseTo(expected[i]!, 14);
    });
  });

  it('are divided by the factor under linear scaling', () => {
    const scaled = inverseFrequencies({ ...plain, scaling: { type: 'linear', factor: 4 } });
    expect([...scaled]).toEqual([...inverseFrequencies(plain)].map((frequency) => frequency / 4));
  });

  // A rotary embedding of two dimensions has the one frequency 1, whose wavelength is 2π. The context that the model was
  // trained with then decides alone how many wavelengths fit, and so how far the frequency is interpolated.
  it.each([
    ['keeps a wavelength that fits more often than the upper bound', 4.5, 1],
    ['keeps it at the upper bound', 4, 1],
    ['interpolates half-way between the bounds', 2.5, 0.5 / 8 + 0.5],
    ['interpolates a quarter above the lower bound', 1.75, 0.75 / 8 + 0.25],
    ['divides at the lower bound', 1, 1 / 8],
    ['divides a wavelength that does not fit', 0.5, 1 / 8],
  ])('under llama3 scaling: %s', (_, wavelengths, expected) => {
    const scaling = { type: 'llama3', factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4 } as const;
    const spec: RopeSpec = { theta: 500_000, dims: 2, scaling: { ...scaling, originalContext: 2 * Math.PI * wavelengths } };
    expect(inverseFrequencies(spec)[0]).toBeCloseTo(expected, 12);
  });

  // Frequency i makes context · θ^(-2i/d) / 2π turns in the original context; the bounds are put where i is `low` and `high`.
  function yarn(low: number, high: number, truncate: boolean): RopeSpec {
    const originalContext = 4096;
    const turns = (i: number) => (originalContext * 10_000 ** ((-2 * i) / 12)) / (2 * Math.PI);
    const bounds = { betaFast: turns(low), betaSlow: turns(high) };
    const scaling = { type: 'yarn', factor: 4, originalContext, attentionFactor: 1, truncate, ...bounds } as const;
    return { theta: 10_000, dims: 12, scaling };
  }

  it.each([
    ['where bounds are whole', yarn(1, 3, false)],
    ['where bounds are rounded outwards', yarn(1.7, 2.2, true)],
  ])('under YaRN keep the fast, divide the slow and ramp between, %s', (_, spec) => {
    const unscaled = inverseFrequencies({ ...spec, scaling: { type: 'default' } });
    const share = [1, 1, 0.5 + 0.5 / 4, 0.25, 0.25, 0.25];
    inverseFrequencies(spec).forEach((frequency, i) => {
      expect(frequency / unscaled[i]!, `frequency ${i}`).toBeCloseTo(share[i]!, 12);
    });
  });

  it('under YaRN ramp from bounds that are not whole when they are not rounded', () => {
    const spec = yarn(1.5, 3.5, false);
    const unscaled = inverseFrequencies({ ...spec, scaling: { type: 'default' } });
    const ramps = [0, 0, 0.25, 0.75, 1, 1];
    inverseFrequencies(spec).forEach((frequency, i) => {
      expect(frequency / unscaled[i]!, `frequency ${i}`).toBeCloseTo(ramps[i]! / 4 + (1 - ramps[i]!), 12);
    });
  });
});

describe('rotary tables', () => {
  it('hold cosine and sine of position times frequency', () => {
    const { cos, sin } = ropeTables(plain, 50);
    expect(cos).toHaveLength(50 * 4);
    for (const [position, i, angle] of [
      [0, 0, 0],
      [0, 3, 0],
      [1, 0, 1],
      [7, 1, 0.7],
      [49, 2, 0.49],
    ] as const) {
      expect(cos[position * 4 + i]).toBeCloseTo(Math.cos(angle), 6);
      expect(sin[position * 4 + i]).toBeCloseTo(Math.sin(angle), 6);
    }
  });

  it('are multiplied by the attention factor of YaRN, and of nothing else', () => {
    const scaling = { type: 'yarn', factor: 4, originalContext: 256, betaFast: 32, betaSlow: 1, truncate: true } as const;
    const { cos } = ropeTables({ ...plain, scaling: { ...scaling, attentionFactor: 1.25 } }, 3);
    expect([...cos.subarray(0, 4)]).toEqual([1.25, 1.25, 1.25, 1.25]);
    expect([...ropeTables(plain, 1).cos]).toEqual([1, 1, 1, 1]);
  });
});
