/** Mixtures of experts against the reference, and to the bit among themselves. */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { largestError } from './largest-error.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'qwen3-moe');
/** Of the largest magnitude in the reference tensor. */
const TOLERANCE = 1e-4;
const golden = JSON.parse(readFileSync(join(FOLDER, 'golden.json'), 'utf8')) as {
  readonly taps: readonly number[];
  readonly cases: readonly { readonly prompt: readonly TokenId[]; readonly greedy: readonly TokenId[] }[];
};
const tensors = readGoldenTensors(join(FOLDER, 'golden.safetensors'));

describe.each(['config.json', 'config.tf5.json'])('qwen3-moe described by %s', (config) => {
  const temporary = new TemporaryFolder();
  let target: OnnxTarget;

  beforeAll(async () => {
    const folder = join(temporary.path, 'qwen3-moe');
    mkdirSync(folder);
    copyFileSync(join(FOLDER, config), join(folder, 'config.json'));
    copyFileSync(join(FOLDER, 'model.safetensors'), join(folder, 'model.safetensors'));
    ({ target } = await loadTestTarget({ folder, cacheDir: temporary.path, taps: golden.taps }));
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    await temporary[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it.each(golden.cases.map((_, index) => index))('computes logits, taps and greedy ids of prompt %i', async (index) => {
    const { prompt, greedy } = golden.cases[index]!;
    const logits = tensors.get(`${index}.logits`)!;
    const [rows, vocab] = logits.shape as [number, number];
    using cache = target.openCache();
    let result = await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - rows }]);
    for (let row = 0; row < rows; row++) {
      const reference = logits.data.subarray(row * vocab, (row + 1) * vocab);
      expect(largestError(result.logits(0, prompt.length - rows + row), reference)).toBeLessThan(TOLERANCE);
    }
    for (const layer of golden.taps) {
      const error = largestError(result.taps.get(layer)!.data, tensors.get(`${index}.hidden.${layer}`)!.data);
      expect(error, `output of layer ${layer}`).toBeLessThan(TOLERANCE);
    }
    const ids = [result.greedy(0, prompt.length - 1)];
    while (ids.length < greedy.length) {
      result = await target.step([{ cache, tokens: ids.slice(-1), logitsFrom: 0 }]);
      ids.push(result.greedy(0, 0));
    }
    expect(ids).toEqual(greedy);
  });
});

describe.each<readonly [WeightFormat, number]>([
  ['f32', 0.999999],
  ['int8', 0.99],
  ['int4', 0.65],
])('qwen3-moe in %s', (format, least) => {
  const temporary = new TemporaryFolder();
  const sequences = golden.cases.map(({ prompt, greedy }) => [...prompt, ...greedy]);
  /** The logits behind each token, of a sequence that was computed alone and at once. */
  const alone: Float32Array[][] = [];
  let target: OnnxTarget;

  beforeAll(async () => {
    ({ target } = await loadTestTarget({ folder: FOLDER, cacheDir: temporary.path, format }));
    for (const tokens of sequences) {
      using cache = target.openCache();
      const result = await target.step([{ cache, tokens, logitsFrom: 0 }]);
      alone.push(tokens.map((_, row) => result.logits(0, row).slice()));
    }
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    await temporary[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it('stays near the reference', () => {
    const reference = tensors.get('2.logits')!;
    const [rows, vocab] = reference.shape as [number, number];
    const last = golden.cases[2]!.prompt.length;
    const likeness = Array.from({ length: rows }, (_, row) =>
      cosine(alone[2]![last - rows + row]!, reference.data.subarray(row * vocab, (row + 1) * vocab)),
    );
    expect(likeness.reduce((sum, value) => sum + value, 0) / rows).toBeGreaterThan(least);
  });

  // An expert multiplies the rows that chose it: beside others, those are other matrices.
  it('computes the same to the bit in pieces of any size, beside any others', async () => {
    for (const size of [1, 2, 3, 5, 8]) {
      const caches = sequences.map(() => target.openCache());
      for (let start = 0; sequences.some(({ length }) => start < length); start += size) {
        const spans = sequences.flatMap((tokens, i) =>
          start < tokens.length ? [{ cache: caches[i]!, tokens: tokens.slice(start, start + size), logitsFrom: 0, i }] : [],
        );
        const result = await target.step(spans);
        for (const [span, { tokens, i }] of spans.entries()) {
          for (const row of tokens.keys()) {
            const same = bits(result.logits(span, row)).equals(bits(alone[i]![start + row]!));
            expect(same, `sequence ${i}, token ${start + row} in pieces of ${size}`).toBe(true);
          }
        }
      }
      for (const cache of caches) cache[Symbol.dispose]();
    }
  });
});

function bits(values: Float32Array): Buffer {
  return Buffer.from(values.slice().buffer);
}

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
