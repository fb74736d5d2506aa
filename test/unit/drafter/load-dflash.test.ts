import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import type { BorrowedTarget } from '../../../src/drafter/borrowed-target.ts';
import { readDflashConfig } from '../../../src/drafter/dflash/dflash-config.ts';
import { KEPT_TOKENS_FILE, loadDflash } from '../../../src/drafter/dflash/load-dflash.ts';
import type { OnnxRuntime } from '../../../src/onnx/runtime.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { CONFIG, dflashFolder, HIDDEN, TARGET_LAYERS, tensors, VOCAB } from './dflash-fixture.ts';

/** Refusals come before anything is computed: touching the runtime is a failure of another kind. */
const UNTOUCHED = new Proxy({} as OnnxRuntime, {
  get(_, key) {
    throw new Error(`expected a refusal, got a use of the runtime's ${String(key)}`);
  },
});

async function load(folder: string, facts: Partial<BorrowedTarget> = {}) {
  const target = {
    hiddenSize: HIDDEN,
    vocabSize: VOCAB,
    layers: TARGET_LAYERS,
    maxContext: 32,
    maxSequences: 1,
    checkpoint: await openCheckpoint(folder),
    head: { weight: 'head', inFeatures: HIDDEN, outFeatures: VOCAB, format: 'f32' },
    ...facts,
  } as BorrowedTarget;
  const cacheDir = await temporaryFolder();
  const config = readDflashConfig(folder);
  return loadDflash({ runtime: UNTOUCHED, device: { kind: 'cpu' }, folder, config, format: 'f32', target, cacheDir });
}

describe('a DFlash drafter is refused', () => {
  it.each([
    { fact: 'hidden_size', target: { hiddenSize: 16 }, message: /hidden_size is 8, the target's is 16/ },
    { fact: 'vocab_size', target: { vocabSize: 41 }, message: /vocab_size is 40, the target's is 41/ },
    { fact: 'num_target_layers', target: { layers: 30 }, message: /num_target_layers is 4, the target's is 30/ },
  ])('for a target of another $fact, naming both', async ({ target, message }) => {
    await expect(load(await dflashFolder(), target)).rejects.toMatchObject({
      code: 'incompatible_drafter',
      message: expect.stringMatching(message),
    });
  });

  it('for an fc that is not as wide as its taps', async () => {
    const folder = await dflashFolder(CONFIG, tensors(3));
    await expect(load(folder)).rejects.toMatchObject({
      message: expect.stringMatching(/\[8, 16\] for fc\.weight, got \[8, 24\]/),
    });
  });

  it('for a tensor that is missing', async () => {
    const { 'hidden_norm.weight': _, ...rest } = tensors();
    await expect(load(await dflashFolder(CONFIG, rest))).rejects.toMatchObject({
      code: 'incompatible_drafter',
      message: expect.stringMatching(/lacks hidden_norm\.weight/),
    });
  });

  it('for a tensor that it would not use', async () => {
    const contents = { ...tensors(), 'aux_norm.weight': tensors()['norm.weight']! };
    await expect(load(await dflashFolder(CONFIG, contents))).rejects.toMatchObject({
      code: 'incompatible_drafter',
      message: expect.stringMatching(/aux_norm\.weight/),
    });
  });

  it.each([
    { title: 'an id outside the vocabulary', tokens: [0, 40], message: /vocabulary of 40, got 40/ },
    { title: 'an id twice', tokens: [3, 3], message: /twice/ },
    { title: 'no ids', tokens: [], message: /draft_tokens\.json/ },
  ])('for a list of kept tokens with $title', async ({ tokens, message }) => {
    const folder = await dflashFolder();
    await writeFile(join(folder, KEPT_TOKENS_FILE), JSON.stringify(tokens));
    await expect(load(folder)).rejects.toThrowError(message);
  });

  it('for none of this when it fits: it is then computed with', async () => {
    await expect(load(await dflashFolder())).rejects.toThrowError(/use of the runtime/);
  });
});
