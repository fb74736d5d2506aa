import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { type GoldenTensor, readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { largestError } from './largest-error.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const NAMES = ['llama-tied', 'llama-rope3', 'qwen2-bias', 'qwen3-untied', 'qwen3-bf16', 'qwen3-yarn', 'dflash-target'];
const CONFIGS = ['config.json', 'config.tf5.json'];
/** Of the largest magnitude in the reference tensor. */
const TOLERANCE = 1e-4;

interface Golden {
  readonly taps: readonly number[];
  readonly cases: readonly { readonly prompt: readonly TokenId[]; readonly greedy: readonly TokenId[] }[];
}

function expected(tensors: ReadonlyMap<string, GoldenTensor>, name: string): GoldenTensor {
  const tensor = tensors.get(name);
  if (tensor === undefined) throw new Error(`The fixture has no tensor ${name}`);
  return tensor;
}

describe.each(NAMES)('%s', (name) => {
  const golden: Golden = JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8'));
  const tensors = readGoldenTensors(join(FIXTURES, name, 'golden.safetensors'));

  describe.each(CONFIGS)('described by %s', (config) => {
    const temporary = new TemporaryFolder();
    let target: OnnxTarget;

    beforeAll(async () => {
      const folder = join(temporary.path, name);
      mkdirSync(folder);
      copyFileSync(join(FIXTURES, name, config), join(folder, 'config.json'));
      copyFileSync(join(FIXTURES, name, 'model.safetensors'), join(folder, 'model.safetensors'));
      ({ target } = await loadTestTarget({ folder, cacheDir: temporary.path, taps: golden.taps }));
    });

    afterAll(async () => {
      await target[Symbol.asyncDispose]();
      await temporary[Symbol.asyncDispose]();
      expect(liveObjects()).toEqual({});
    });

    it.each(golden.cases.map((_, index) => index))('computes the logits and taps of case %i', async (index) => {
      const { prompt } = golden.cases[index]!;
      const logits = expected(tensors, `${index}.logits`);
      const [rows, vocab] = logits.shape as [number, number];
      expect(vocab).toBe(target.facts.vocabSize);
      using cache = target.openCache();
      const result = await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - rows }]);
      for (let row = 0; row < rows; row++) {
        const reference = logits.data.subarray(row * vocab, (row + 1) * vocab);
        const error = largestError(result.logits(0, prompt.length - rows + row), reference);
        expect(error, `logits of row ${row}`).toBeLessThan(TOLERANCE);
      }
      for (const layer of golden.taps) {
        const hidden = expected(tensors, `${index}.hidden.${layer}`);
        expect(result.taps.get(layer)?.shape).toEqual(hidden.shape);
        const error = largestError(result.taps.get(layer)!.data, hidden.data);
        expect(error, `output of layer ${layer}`).toBeLessThan(TOLERANCE);
      }
    });

    it.each(golden.cases.map((_, index) => index))('decodes the greedy ids of case %i', async (index) => {
      const { prompt, greedy } = golden.cases[index]!;
      using cache = target.openCache();
      const ids: TokenId[] = [];
      let tokens = prompt;
      while (ids.length < greedy.length) {
        const last = tokens.length - 1;
        const result = await target.step([{ cache, tokens, logitsFrom: last }]);
        ids.push(result.greedy(0, last));
        tokens = ids.slice(-1);
      }
      expect(ids).toEqual(greedy);
      expect(cache.length).toBe(prompt.length + greedy.length - 1);
    });
  });
});
