/** Hybrids of gated DeltaNet and gated attention against the reference. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { largestError } from './largest-error.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
/** Of the largest magnitude in the reference tensor. */
const TOLERANCE = 1e-4;
/** As published, as transformers 5 writes it, and under the name of the next version, which is of the same form. */
const CONFIGS: readonly (readonly [string, string, (config: string) => string])[] = [
  ['qwen3_5-nested', 'config.json', (config) => config],
  ['qwen3_5-nested', 'config.tf5.json', (config) => config],
  ['qwen3_5-nested', 'config.json', (config) => config.replaceAll('qwen3_5', 'qwen3_6')],
  ['qwen3_5-text', 'config.json', (config) => config],
  ['qwen3_5-text', 'config.tf5.json', (config) => config],
  ['qwen3_5-text', 'config.json', (config) => config.replaceAll('qwen3_5', 'qwen3_6')],
];

interface Golden {
  readonly taps: readonly number[];
  readonly cases: readonly { readonly prompt: readonly TokenId[]; readonly greedy: readonly TokenId[] }[];
}

describe.each(CONFIGS)('%s described by %s', (name, file, change) => {
  const golden: Golden = JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8'));
  const tensors = readGoldenTensors(join(FIXTURES, name, 'golden.safetensors'));
  const temporary = new TemporaryFolder();
  let target: OnnxTarget;

  beforeAll(async () => {
    const folder = join(temporary.path, name);
    mkdirSync(folder);
    writeFileSync(join(folder, 'config.json'), change(readFileSync(join(FIXTURES, name, file), 'utf8')));
    copyFileSync(join(FIXTURES, name, 'model.safetensors'), join(folder, 'model.safetensors'));
    ({ target } = await loadTestTarget({ folder, cacheDir: temporary.path, taps: golden.taps }));
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    await temporary[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it('computes logits and taps of all prompts', async () => {
    for (const [index, { prompt }] of golden.cases.entries()) {
      const logits = tensors.get(`${index}.logits`)!;
      const [rows, vocab] = logits.shape as [number, number];
      using cache = target.openCache();
      const result = await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - rows }]);
      for (let row = 0; row < rows; row++) {
        const reference = logits.data.subarray(row * vocab, (row + 1) * vocab);
        const error = largestError(result.logits(0, prompt.length - rows + row), reference);
        expect(error, `logits of prompt ${index}, row ${row}`).toBeLessThan(TOLERANCE);
      }
      for (const layer of golden.taps) {
        const error = largestError(result.taps.get(layer)!.data, tensors.get(`${index}.hidden.${layer}`)!.data);
        expect(error, `prompt ${index}, output of layer ${layer}`).toBeLessThan(TOLERANCE);
      }
    }
  });

  it('decodes the greedy ids of all prompts, which take turns in steps of any number of them', async () => {
    const sequences = golden.cases.map(({ prompt, greedy }) => ({
      cache: target.openCache(),
      tokens: prompt,
      greedy,
      ids: [] as TokenId[],
    }));
    for (let step = 0; sequences.some(({ ids, greedy }) => ids.length < greedy.length); step++) {
      const members = sequences.filter(({ ids, greedy }, i) => ids.length < greedy.length && (step + i) % 3 !== 0);
      if (members.length === 0) continue;
      const result = await target.step(members.map(({ cache, tokens }) => ({ cache, tokens, logitsFrom: tokens.length - 1 })));
      for (const [span, member] of members.entries()) {
        member.ids.push(result.greedy(span, member.tokens.length - 1));
        member.tokens = member.ids.slice(-1);
      }
    }
    for (const { cache, ids, greedy } of sequences) {
      expect(ids).toEqual(greedy);
      cache[Symbol.dispose]();
    }
  });
});

describe.each([
  ['int8', 0.99],
  ['int4', 0.65],
] as const)('qwen3_5-text in %s', (format, least) => {
  // The weights are random, so that nothing evens out what rounding does, unlike in a trained model.
  it('stays near the float weights', async () => {
    await using temporary = new TemporaryFolder();
    const folder = join(FIXTURES, 'qwen3_5-text');
    const golden: Golden = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8'));
    const { prompt } = golden.cases[2]!;
    const reference = readGoldenTensors(join(folder, 'golden.safetensors')).get('2.logits')!;
    const { target } = await loadTestTarget({ folder, cacheDir: temporary.path, format });
    await using _ = target;
    using cache = target.openCache();
    const [rows, vocab] = reference.shape as [number, number];
    const result = await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - rows }]);
    const likeness = Array.from({ length: rows }, (_, row) =>
      cosine(result.logits(0, prompt.length - rows + row), reference.data.subarray(row * vocab, (row + 1) * vocab)),
    );
    const mean = likeness.reduce((sum, value) => sum + value, 0) / rows;
    expect(mean).toBeGreaterThan(least);
    // The same numbers would mean that nothing was quantised.
    expect(mean).toBeLessThan(0.999999);
  });
});

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
