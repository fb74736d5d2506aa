/** The places that a drafter of this layout can tap beside the layers: the embedding, and the last layer on both sides of the final norm. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/checkpoint.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import golden from './fixtures/dflash-target/golden.json' with { type: 'json' };
import { largestError } from './largest-error.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'dflash-target');
const tensors = readGoldenTensors(join(FOLDER, 'golden.safetensors'));
const TOLERANCE = 1e-4;
const { prompt } = golden.cases[1]!;

const temporary = new TemporaryFolder();
let target: OnnxTarget;
let taps: ReadonlyMap<number, Float32Array>;
let logits: Float32Array;

beforeAll(async () => {
  const layers = 6;
  ({ target } = await loadTestTarget({ folder: FOLDER, cacheDir: temporary.path, taps: [-1, layers - 1, layers] }));
  expect(target.facts.layers).toBe(layers);
  using cache = target.openCache();
  const result = await target.step([{ cache, tokens: prompt, logitsFrom: 0 }]);
  taps = new Map([...result.taps].map(([tap, { data }]) => [tap, data.slice()]));
  logits = result.logits(0, prompt.length - 1).slice();
});

afterAll(async () => {
  await target[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
});

it('has the rows of the table as tap -1', async () => {
  const { hiddenSize } = target.facts;
  const checkpoint = await openCheckpoint(FOLDER);
  for (const [row, token] of prompt.entries()) {
    const expected = await checkpoint.readRows('model.embed_tokens.weight', token, token + 1);
    expect(taps.get(-1)!.slice(row * hiddenSize, (row + 1) * hiddenSize)).toEqual(expected);
  }
});

it('has the last layer’s own output as its tap', () => {
  expect(largestError(taps.get(5)!, tensors.get('1.last_layer')!.data)).toBeLessThan(TOLERANCE);
});

it('has what the head is given as the tap behind it', async () => {
  const { hiddenSize, vocabSize } = target.facts;
  const head = await (await openCheckpoint(FOLDER)).readRows('lm_head.weight', 0, vocabSize);
  const last = taps.get(6)!.subarray((prompt.length - 1) * hiddenSize);
  const products = Float32Array.from({ length: vocabSize }, (_, token) => {
    let sum = 0;
    for (let i = 0; i < hiddenSize; i++) sum += head[token * hiddenSize + i]! * last[i]!;
    return sum;
  });
  expect(largestError(products, logits)).toBeLessThan(TOLERANCE);
  expect(largestError(taps.get(5)!, taps.get(6)!)).toBeGreaterThan(0.1);
});

it.each([-2, 7, 1.5])('has no tap %d', async (tap) => {
  const options = { folder: FOLDER, cacheDir: temporary.path, taps: [tap] };
  await expect(loadTestTarget(options)).rejects.toMatchObject({ code: 'incompatible_drafter' });
});
