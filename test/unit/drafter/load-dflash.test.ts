import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { importCommand } from '../../../src/cli/import-command.ts';
import { openFolder } from '../../../src/cli/inspect-folder.ts';
import type { BorrowedTarget } from '../../../src/drafter/borrowed-target.ts';
import { type DflashConfig, readDflashConfig } from '../../../src/drafter/dflash/dflash-config.ts';
import { KEPT_TOKENS_FILE } from '../../../src/drafter/dflash/kept-tokens.ts';
import { loadDflash } from '../../../src/drafter/dflash/load-dflash.ts';
import type { OnnxRuntime } from '../../../src/onnx/runtime.ts';
import { f32, temporaryFolder, weights } from '../checkpoint/checkpoint-fixture.ts';
import { runCommand } from '../cli/run-command.ts';
import { CONFIG, dflashFolder, HIDDEN, SPECULATORS_CONFIG, TARGET_LAYERS, tensors, VOCAB } from './dflash-fixture.ts';

/** Refusals come before anything is computed: touching the runtime is a failure of another kind. */
const UNTOUCHED = new Proxy({} as OnnxRuntime, {
  get(_, key) {
    throw new Error(`expected a refusal, got a use of the runtime's ${String(key)}`);
  },
});

function load(folder: string, facts: Partial<BorrowedTarget> = {}, allowUnclaimed = false) {
  return loadAs(folder, readDflashConfig(folder, { allowUnclaimed }), facts, allowUnclaimed);
}

async function loadAs(folder: string, config: DflashConfig, facts: Partial<BorrowedTarget> = {}, allowUnclaimed = false) {
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
  const common = { runtime: UNTOUCHED, device: { kind: 'cpu' }, format: 'f32' } as const;
  return loadDflash({ ...common, folder, config, target, cacheDir, allowUnclaimed });
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
      code: 'incompatible_drafter',
      message: expect.stringMatching(/fc\.weight to take 2 layers of 8.* width of 24, which is 3/),
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
    { tensor: 'candidate_selector.hidden_projection.weight', owner: 'DFlash 2' },
    { tensor: 'layers.0.self_attn.k_proj_target.weight', owner: 'DFlare' },
    { tensor: 'hidden_correction.gate.weight', owner: 'DFly' },
    { tensor: 'aux_hidden_norms.0.weight', owner: 'a Laguna drafter' },
  ])('for $tensor, which is of $owner', async ({ tensor, owner }) => {
    const contents = { ...tensors(), [tensor]: tensors()['norm.weight']! };
    await expect(load(await dflashFolder(CONFIG, contents))).rejects.toThrowError(`${tensor} (of ${owner}, `);
  });

  it('for tables of its own in the layout that has none', async () => {
    const contents = { ...tensors(), 'lm_head.weight': f32([VOCAB, HIDDEN], weights(VOCAB * HIDDEN)) };
    await expect(load(await dflashFolder(CONFIG, contents))).rejects.toThrowError(/lm_head\.weight/);
  });

  it('for none of its tensors where unclaimed ones are allowed', async () => {
    const contents = { ...tensors(), 'aux_norm.weight': tensors()['norm.weight']! };
    await expect(load(await dflashFolder(CONFIG, contents), {}, true)).rejects.toThrowError(/use of the runtime/);
  });

  it('for a mask vector in place of a mask token', async () => {
    const folder = await dflashFolder();
    await writeFile(join(folder, 'mask_embedding.pt'), '');
    await expect(load(folder)).rejects.toThrowError(/mask_embedding\.pt/);
    // Nothing that copies its other files may leave this one behind unseen.
    await expect(openFolder(folder)).rejects.toThrowError(/mask_embedding\.pt/);
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

describe('a DFlash 2 drafter', () => {
  const keys = { conv_kernel_size: 2, conv_group_size: 4, selector_rank: 6, selector_top_k: 5 };
  const config = {
    ...CONFIG,
    architectures: ['DFlash2DraftModel'],
    dflash_config: { ...CONFIG.dflash_config, ...keys },
  };
  const tensor = (...shape: number[]) => f32(shape, weights(shape.reduce((product, size) => product * size, 1)));
  const convolutions = ['attention_conv', 'mlp_conv'].flatMap((part) => [
    [`layers.0.${part}.base_kernel`, tensor(2, 2, HIDDEN)] as const,
    [`layers.0.${part}.kernel_projection.weight`, tensor((2 * 2 * HIDDEN) / 4, HIDDEN)] as const,
  ]);
  const contents = {
    ...tensors(),
    ...Object.fromEntries(convolutions),
    'candidate_selector.hidden_projection.weight': tensor(6, HIDDEN),
  };
  const codebooks = (suffix: string) =>
    Object.fromEntries(
      ['predecessor', 'successor'].map((name) => [`candidate_selector.${name}_codebook${suffix}`, tensor(VOCAB, 6)]),
    );

  it.each(['', '.weight'])('has codebooks by either name (%j), and keeps it when it is converted', async (suffix) => {
    const folder = await dflashFolder(config, { ...contents, ...codebooks(suffix) });
    await expect(load(folder)).rejects.toThrowError(/use of the runtime/);
    const out = join(await temporaryFolder(), 'out');
    await runCommand(importCommand(), folder, '--out', out);
    expect([...(await openCheckpoint(out)).names].sort()).toEqual([...(await openCheckpoint(folder)).names].sort());
  });

  it('is refused without them, or with both', async () => {
    await expect(load(await dflashFolder(config, contents))).rejects.toThrowError(
      /lacks candidate_selector\.predecessor_codebook/,
    );
    const both = { ...contents, ...codebooks(''), ...codebooks('.weight') };
    await expect(load(await dflashFolder(config, both))).rejects.toThrowError(/predecessor_codebook\.weight/);
  });
});

describe('a speculators drafter is refused', () => {
  const REDUCED = { ...SPECULATORS_CONFIG, draft_vocab_size: 3 };
  const d2t = (...offsets: bigint[]) => ({ dtype: 'I64', shape: [offsets.length], data: BigInt64Array.from(offsets) });
  const t2d = (...tokens: number[]) => {
    const data = new Uint8Array(VOCAB);
    for (const token of tokens) data[token] = 1;
    return { dtype: 'BOOL', shape: [VOCAB], data };
  };
  const head = f32([3, HIDDEN], weights(3 * HIDDEN));
  const reduced = { ...tensors(), 'lm_head.weight': head, d2t: d2t(2n, 4n, 7n), t2d: t2d(2, 5, 9) };

  it('for none of this when it fits, with tables of its own or without', async () => {
    const table = f32([VOCAB, HIDDEN], weights(VOCAB * HIDDEN));
    const whole = { ...tensors(), 'embed_tokens.weight': table, 'lm_head.weight': table };
    await expect(load(await dflashFolder(SPECULATORS_CONFIG))).rejects.toThrowError(/use of the runtime/);
    await expect(load(await dflashFolder(SPECULATORS_CONFIG, whole))).rejects.toThrowError(/use of the runtime/);
    await expect(load(await dflashFolder(REDUCED, reduced))).rejects.toThrowError(/use of the runtime/);
  });

  it.each([
    { title: 'no table of ids', contents: { ...tensors(), 'lm_head.weight': head }, message: /expected a tensor d2t/ },
    { title: 'a table of another length', contents: { ...reduced, d2t: d2t(2n, 4n) }, message: /d2t of 3.* got 2/ },
    {
      title: 'an id outside the vocabulary',
      contents: { ...reduced, d2t: d2t(2n, 4n, 38n) },
      message: /vocabulary of 40, got 40/,
    },
    { title: 'an id twice', contents: { ...reduced, d2t: d2t(2n, 1n, 7n) }, message: /one twice/ },
    {
      title: 'tables that contradict each other',
      contents: { ...reduced, t2d: t2d(2, 5, 8) },
      message: /t2d of 40 to name the 3 ids/,
    },
    {
      title: 'a table of floats',
      contents: { ...reduced, d2t: f32([3], weights(3)) },
      message: /integers or booleans in tensor d2t, got F32/,
    },
  ])('for $title', async ({ contents, message }) => {
    await expect(load(await dflashFolder(REDUCED, contents))).rejects.toThrowError(message);
  });

  it('for layers that its trainer’s default does not name', async () => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: null });
    const config = readDflashConfig(folder, { targetLayers: 30 });
    expect(config.taps).toHaveLength(3);
    await expect(loadAs(folder, config, { layers: 30 })).rejects.toThrowError(
      /names no layers and fc\.weight takes 2 of them, not the 3/,
    );
  });

  it.each([
    { ids: [1, 5], finalTap: null, message: /taps layer 5, the target's last is 4/ },
    { ids: [1, 4], finalTap: null, message: /last layer \(4\).*final_tap/ },
    { ids: [1, 3], finalTap: 'post', message: /last layer \(4\) among its taps.* got 1, 4/ },
    { ids: [1, 3], finalTap: 'pre', message: /last layer \(4\) among its taps.* got 1, 3/ },
  ] as const)('for ids $ids with final_tap $finalTap on a target of 4 layers', async ({ ids, finalTap, message }) => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: ids });
    await expect(loadAs(folder, readDflashConfig(folder, { finalTap }))).rejects.toThrowError(message);
  });
});
