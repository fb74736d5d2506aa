/** States of gated DeltaNet layers against the reference, after prompts, drafts and rejections. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import type { PooledCache } from '../../src/model/kv-cache.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { largestError } from './largest-error.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'qwen3_5-text');
const RECURRENT_LAYERS = [0, 1, 2, 4, 5, 6];
/** Of the largest magnitude in the reference tensor. */
const TOLERANCE = 1e-4;
/** Tokens behind the prompt after which the reference recorded its states. */
const EXTRA_TOKENS = [0, 1, 3, 8];

const temporary = new TemporaryFolder();
const states = readGoldenTensors(join(FOLDER, 'states.safetensors'));
const { prompt, greedy } = JSON.parse(readFileSync(join(FOLDER, 'golden.json'), 'utf8')).cases[1] as {
  readonly prompt: readonly TokenId[];
  readonly greedy: readonly TokenId[];
};
let target: OnnxTarget;

beforeAll(async () => {
  ({ target } = await loadTestTarget({ folder: FOLDER, cacheDir: temporary.path }));
});

afterAll(async () => {
  await target[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

/** The step of another sequence brings this one's states to where it was cut. */
async function settle(): Promise<void> {
  using other = target.openCache();
  await target.step([{ cache: other, tokens: [1], logitsFrom: 1 }]);
}

async function expectStates(cache: PooledCache, length: number): Promise<void> {
  await settle();
  expect(cache.length).toBe(length);
  const { windows, states: matrices } = cache.recurrent!.past!;
  for (const [index, layer] of RECURRENT_LAYERS.entries()) {
    const recurrent = states.get(`${length}.layer.${layer}.recurrent`)!;
    expect(largestError(matrices[index]!.data, recurrent.data), `state of layer ${layer}`).toBeLessThan(TOLERANCE);
    const window = states.get(`${length}.layer.${layer}.conv`)!;
    const [channels, width] = window.shape as [number, number];
    // The reference has one row more, the oldest first, by channel.
    const rows = Float32Array.from({ length: (width - 1) * channels }, (_, i) => {
      const [row, channel] = [Math.floor(i / channels), i % channels];
      return window.data[channel * width + row + 1]!;
    });
    expect(largestError(windows[index]!.data, rows), `window of layer ${layer}`).toBeLessThan(TOLERANCE);
  }
}

describe('the states of a sequence', () => {
  it.each(EXTRA_TOKENS)('agree after the prompt and %i tokens, one by one', async (extra) => {
    using cache = target.openCache();
    await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - 1 }]);
    for (const token of greedy.slice(0, extra)) await target.step([{ cache, tokens: [token], logitsFrom: 0 }]);
    await expectStates(cache, prompt.length + extra);
  });

  it.each(EXTRA_TOKENS)('agree when %i tokens of a block stay, and the wrong ones behind them do not', async (extra) => {
    using cache = target.openCache();
    await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - 1 }]);
    await target.step([{ cache, tokens: [...greedy.slice(0, extra), 5, 77, 130, 9], logitsFrom: 0 }]);
    cache.truncate(prompt.length + extra);
    await expectStates(cache, prompt.length + extra);
  });

  it('agree when a block begins the sequence, and its end is taken back', async () => {
    using cache = target.openCache();
    await target.step([{ cache, tokens: [...prompt, ...greedy.slice(0, 3), 5, 77], logitsFrom: 0 }]);
    cache.truncate(prompt.length + 3);
    await expectStates(cache, prompt.length + 3);
  });
});
