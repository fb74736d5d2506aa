import { describe, expect, it } from 'vitest';
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import { type LinearFormat, linear, QUANT_BLOCK } from '../../../src/graph/linear.ts';
import { type Elements, noise, runGraph } from './run-graph.ts';

const ROWS = 5;
const OUT = 24;

/** A weight [OUT, inFeatures] in a storage format, and the numbers that it stands for. */
interface StoredWeight {
  readonly tensors: Readonly<Record<string, Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>>>;
  readonly values: Float32Array;
}

function plainWeight(inFeatures: number): StoredWeight {
  const values = noise(OUT * inFeatures, 1);
  return { tensors: { w: values }, values };
}

/** Codes are drawn at random: a value is (code - 2^(bits-1)) · scale, and two codes of 4 bits share a byte, the first in its low half. */
function blockWeight(bits: 8 | 4, inFeatures: number): StoredWeight {
  const blocks = Math.ceil(inFeatures / QUANT_BLOCK);
  const levels = 2 ** bits;
  const codes = noise(OUT * blocks * QUANT_BLOCK, 2).map((value) =>
    Math.min(Math.floor(((value + 1) / 2) * levels), levels - 1),
  );
  const scale = noise(OUT * blocks, 3).map((value) => (Math.abs(value) + 0.1) / levels);
  const q = Uint8Array.from({ length: (codes.length * bits) / 8 }, (_, i) =>
    bits === 8 ? codes[i]! : codes[2 * i]! | (codes[2 * i + 1]! << 4),
  );
  const values = new Float32Array(OUT * inFeatures);
  for (let row = 0; row < OUT; row++) {
    for (let k = 0; k < inFeatures; k++) {
      const block = row * blocks + Math.floor(k / QUANT_BLOCK);
      values[row * inFeatures + k] = (codes[block * QUANT_BLOCK + (k % QUANT_BLOCK)]! - levels / 2) * scale[block]!;
    }
  }
  return { tensors: { 'w.q': q, 'w.scale': scale }, values };
}

function stored(format: LinearFormat, inFeatures: number): StoredWeight {
  if (format === 'f32') return plainWeight(inFeatures);
  return blockWeight(format === 'int8' ? 8 : 4, inFeatures);
}

function product(format: LinearFormat, weight: StoredWeight, x: Elements, bias: Float32Array<ArrayBuffer> | null) {
  const [rows, inFeatures] = x.shape as [number, number];
  const graph = new GraphBuilder();
  const y = linear(graph, graph.input('x', 'f32', ['rows', inFeatures]), {
    weight: 'w',
    inFeatures,
    outFeatures: OUT,
    format,
    name: 'y',
    ...(bias === null ? {} : { bias: 'b' }),
  });
  graph.output(y, 'f32', ['rows', OUT]);
  const weights = { ...weight.tensors, ...(bias === null ? {} : { b: bias }) };
  return runGraph(graph, weights, { x }, { name: 'y', shape: [rows, OUT] });
}

function elements(shape: readonly number[], data: Float32Array<ArrayBuffer>): Elements {
  return { type: 'f32', shape, data };
}

/**
 * How far y[row, out] may be off: rounding of sums, and for quantised weights the rounding of the activations, which the
 * kernel turns into 8 bits a block: by half a step, 1/254 of the block's largest magnitude.
 */
function tolerance(format: LinearFormat, x: Float32Array, w: Float32Array): number {
  let sum = 0;
  for (let start = 0; start < x.length; start += QUANT_BLOCK) {
    const peak = Math.max(...x.subarray(start, start + QUANT_BLOCK).map(Math.abs));
    const weights = w.subarray(start, start + QUANT_BLOCK).reduce((total, value) => total + Math.abs(value), 0);
    sum += weights * peak;
  }
  return sum * (format === 'f32' ? 1e-6 : 1 / 254 + 1e-5);
}

describe.each(['f32', 'int8', 'int4'] as const)('a product with a weight of %s', (format) => {
  it.each([
    [64, false],
    [96, true],
    [80, false],
  ])('over %i features (bias: %s) is x Wᵀ + b', async (inFeatures, withBias) => {
    const x = noise(ROWS * inFeatures, 4);
    const weight = stored(format, inFeatures);
    const bias = withBias ? noise(OUT, 5) : null;
    const y = await product(format, weight, elements([ROWS, inFeatures], x), bias);
    for (let row = 0; row < ROWS; row++) {
      for (let out = 0; out < OUT; out++) {
        const xRow = x.subarray(row * inFeatures, (row + 1) * inFeatures);
        const wRow = weight.values.subarray(out * inFeatures, (out + 1) * inFeatures);
        const expected = xRow.reduce((sum, value, k) => sum + value * wRow[k]!, bias?.[out] ?? 0);
        const allowed = tolerance(format, xRow, wRow) + 1e-6;
        expect(Math.abs(y[row * OUT + out]! - expected), `row ${row}, output ${out}`).toBeLessThan(allowed);
      }
    }
  });

  it('has rows that are the same to the bit, alone and beside others', async () => {
    const inFeatures = 96;
    const x = noise(ROWS * inFeatures, 6);
    const weight = stored(format, inFeatures);
    const together = await product(format, weight, elements([ROWS, inFeatures], x), null);
    for (let first = 0; first < ROWS; first++) {
      for (let rows = 1; rows <= ROWS - first; rows++) {
        const part = x.slice(first * inFeatures, (first + rows) * inFeatures);
        const y = await product(format, weight, elements([rows, inFeatures], part), null);
        expect([...y], `rows ${first} to ${first + rows}`).toEqual([...together.subarray(first * OUT, (first + rows) * OUT)]);
      }
    }
  });
});
