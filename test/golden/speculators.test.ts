import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { argmax } from '../../src/sampling/argmax.ts';
import { type GoldenTensor, readGoldenTensors } from '../support/golden-tensors.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { f32, safetensors } from '../unit/checkpoint/checkpoint-fixture.ts';
import { largestError } from './largest-error.ts';
import { DflashPair, readGoldenRuns } from './open-dflash.ts';
import { speculate } from './speculate.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
/** Of the largest magnitude in the reference tensor. */
const TOLERANCE = 1e-4;
const NEVER = new AbortController().signal;

interface Golden {
  readonly input_ids: readonly TokenId[];
  readonly anchors: readonly number[];
  readonly draft_ids: readonly (readonly TokenId[])[];
}

describe.each(['speculators-full', 'speculators-reduced'])('%s', (name) => {
  const golden: Golden = JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8'));
  const tensors = readGoldenTensors(join(FIXTURES, name, 'golden.safetensors'));
  const features = tensors.get('features')!.data;
  const [, slots, width] = tensors.get('hidden')!.shape as [number, number, number];
  const headRows = tensors.get('logits')!.shape[2]!;
  let pair: DflashPair;

  beforeAll(async () => {
    pair = await DflashPair.openFixture(name);
  });

  afterAll(async () => {
    await pair[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it('is given the features that its layer ids mean', async () => {
    using cache = pair.target.openCache();
    const { taps } = await pair.target.step([{ cache, tokens: golden.input_ids, logitsFrom: 0 }]);
    const { hiddenSize } = pair.target.facts;
    const rows = golden.input_ids.flatMap((_, row) =>
      pair.drafter.taps.flatMap((layer) => [...taps.get(layer)!.data.subarray(row * hiddenSize, (row + 1) * hiddenSize)]),
    );
    expect(largestError(Float32Array.from(rows), features)).toBeLessThan(TOLERANCE);
  });

  it.each(golden.anchors.map((anchor, index) => ({ anchor, index })))(
    'fills the block behind position $anchor as the reference',
    async ({ anchor, index }) => {
      using cache = pair.target.openCache();
      using state = pair.drafter.open();
      const tokens = golden.input_ids.slice(0, anchor);
      const { taps } = await pair.target.step([{ cache, tokens, logitsFrom: tokens.length }]);
      state.observe({ position: 0, tokens, taps, firstRow: 0 });
      const request = { state, anchor: golden.input_ids[anchor]!, budget: slots - 1 };
      const [proposal] = await pair.drafter.propose([request], NEVER);
      expect(proposal!.tokens).toEqual(golden.draft_ids[index]);

      const { hidden, logits } = pair.drafter.activations!;
      const block = (name: string, size: number, skipped: number) =>
        tensors.get(name)!.data.subarray((index * slots + skipped) * size, (index + 1) * slots * size);
      expect(largestError(hidden.data, block('hidden', width, 0))).toBeLessThan(TOLERANCE);
      // Slot 0 is the anchor's, and nothing is drafted there.
      expect(largestError(logits.data, block('logits', headRows, 1))).toBeLessThan(TOLERANCE);
    },
  );

  it.each(readGoldenRuns(name))('is decoded to the reference’s ids with its acceptance lengths', async (run) => {
    const limits = { maxTokens: run.max_new_tokens, stopTokens: run.stop_token_ids ?? [], draftPastEnd: 1 };
    const result = await speculate(pair.target, pair.drafter, run.prompt, limits);
    expect(result.output).toEqual(run.output);
    expect(result.rounds.map(({ emitted }) => emitted)).toEqual(run.acceptance_lengths);
    expect(result.rounds.map(({ drafted }) => drafted)).toEqual(run.steps.map(({ draft }) => draft.length));
  });
});

/** The folder of a fixture with other tensors. Written by the format's description, not with the code under test. */
function folderWith(
  path: string,
  name: string,
  change: (tensors: Map<string, GoldenTensor>) => void,
  config: object = {},
): void {
  const tensors = new Map(readGoldenTensors(join(FIXTURES, name, 'model.safetensors')));
  change(tensors);
  mkdirSync(path);
  writeFileSync(
    join(path, 'model.safetensors'),
    safetensors(Object.fromEntries([...tensors].map(([key, { shape, data }]) => [key, f32(shape, data)]))),
  );
  const known = JSON.parse(readFileSync(join(FIXTURES, name, 'config.json'), 'utf8'));
  writeFileSync(join(path, 'config.json'), JSON.stringify({ ...known, ...config }));
}

describe('a drafter with tensors that others lack', () => {
  const target = readGoldenTensors(join(FIXTURES, 'dflash-target', 'model.safetensors'));
  const temporary = new TemporaryFolder();
  const [run] = readGoldenRuns('speculators-full');

  afterAll(() => temporary[Symbol.asyncDispose]());

  /** Draft ids and logits of one block, by the drafter in a folder. */
  async function block(folder: string) {
    await using pair = await DflashPair.open(folder, join(FIXTURES, 'dflash-target'));
    using cache = pair.target.openCache();
    using state = pair.drafter.open();
    const { taps } = await pair.target.step([{ cache, tokens: run!.prompt, logitsFrom: run!.prompt.length }]);
    state.observe({ position: 0, tokens: run!.prompt, taps, firstRow: 0 });
    const [proposal] = await pair.drafter.propose([{ state, anchor: run!.steps[0]!.anchor, budget: 7 }], NEVER);
    return { tokens: proposal!.tokens, logits: pair.drafter.activations!.logits.data.slice() };
  }

  it('drafts from the anchor’s slot on where it was trained to', async () => {
    const golden: Golden = JSON.parse(readFileSync(join(FIXTURES, 'speculators-full', 'golden.json'), 'utf8'));
    const logits = readGoldenTensors(join(FIXTURES, 'speculators-full', 'golden.safetensors')).get('logits')!;
    const [, slots, vocab] = logits.shape as [number, number, number];
    const folder = join(temporary.path, 'from-anchor');
    folderWith(folder, 'speculators-full', () => undefined, { sample_from_anchor: true });
    await using pair = await DflashPair.open(folder, join(FIXTURES, 'dflash-target'));
    expect(pair.drafter.maxDraftTokens).toBe(slots);
    for (const [index, anchor] of golden.anchors.entries()) {
      using cache = pair.target.openCache();
      using state = pair.drafter.open();
      const tokens = golden.input_ids.slice(0, anchor);
      const { taps } = await pair.target.step([{ cache, tokens, logitsFrom: tokens.length }]);
      state.observe({ position: 0, tokens, taps, firstRow: 0 });
      const [proposal] = await pair.drafter.propose([{ state, anchor: golden.input_ids[anchor]!, budget: slots }], NEVER);
      // The block is computed as ever: all of its rows are drafts now.
      const rows = Array.from({ length: slots }, (_, slot) => (index * slots + slot) * vocab);
      expect(proposal!.tokens).toEqual(rows.map((row) => argmax(logits.data.subarray(row, row + vocab))));
    }
  });

  it('gives the answers of plain decoding, drafting from the anchor’s slot or not', async () => {
    const folder = join(temporary.path, 'from-anchor-text');
    folderWith(folder, 'speculators-full', () => undefined, { sample_from_anchor: true });
    await using pair = await DflashPair.open(folder, join(FIXTURES, 'dflash-target'));
    const limits = { maxTokens: run!.max_new_tokens, stopTokens: run!.stop_token_ids ?? [], draftPastEnd: 0 };
    const result = await speculate(pair.target, pair.drafter, run!.prompt, limits);
    expect(result.output).toEqual(run!.output);
    expect(Math.max(...result.rounds.map(({ drafted }) => drafted))).toBe(pair.drafter.maxDraftTokens);
  });

  it('drafts with its own embedding and head: the target’s as its own change nothing, others do', async () => {
    const expected = await block(join(FIXTURES, 'speculators-full'));
    expect(expected.tokens).toEqual(run!.steps[0]!.draft);
    const [same, other] = ['same', 'other'].map((name) => join(temporary.path, name)) as [string, string];
    const table = target.get('model.embed_tokens.weight')!;
    const head = target.get('lm_head.weight')!;
    folderWith(same, 'speculators-full', (tensors) => tensors.set('embed_tokens.weight', table).set('lm_head.weight', head));
    expect(await block(same)).toEqual(expected);
    const doubled = { shape: head.shape, data: head.data.map((value) => 2 * value) };
    const shifted = { shape: table.shape, data: table.data.map((_, i) => table.data[(i + 64) % table.data.length]!) };
    folderWith(other, 'speculators-full', (tensors) =>
      tensors.set('embed_tokens.weight', table).set('lm_head.weight', doubled),
    );
    expect(
      largestError(
        (await block(other)).logits,
        expected.logits.map((logit) => 2 * logit),
      ),
    ).toBeLessThan(TOLERANCE);
    const moved = join(temporary.path, 'moved');
    folderWith(moved, 'speculators-full', (tensors) => tensors.set('embed_tokens.weight', shifted));
    expect(largestError((await block(moved)).logits, expected.logits)).toBeGreaterThan(0.01);
  });

  it('adds biases: one of the values is one of the output, as attention weights sum to 1', async () => {
    const [heads, kvHeads, headDim, hidden, layers] = [4, 2, 32, 64, 2];
    const values = (length: number, seed: number) => Float32Array.from({ length }, (_, i) => Math.sin(seed + i));
    const config = JSON.parse(readFileSync(join(FIXTURES, 'dflash-trained', 'config.json'), 'utf8'));
    const make = (name: string, biases: (layer: number, output: Float32Array) => readonly [Float32Array, Float32Array]) => {
      const folder = join(temporary.path, name);
      folderWith(
        folder,
        'dflash-trained',
        (tensors) => {
          for (let layer = 0; layer < layers; layer++) {
            const prefix = `layers.${layer}.self_attn`;
            const [value, output] = biases(layer, tensors.get(`${prefix}.o_proj.weight`)!.data);
            const sizes = { q_proj: heads * headDim, k_proj: kvHeads * headDim };
            for (const [part, size] of Object.entries(sizes)) {
              tensors.set(`${prefix}.${part}.bias`, { shape: [size], data: new Float32Array(size) });
            }
            tensors.set(`${prefix}.v_proj.bias`, { shape: [kvHeads * headDim], data: value });
            tensors.set(`${prefix}.o_proj.bias`, { shape: [hidden], data: output });
          }
        },
        { ...config, attention_bias: true },
      );
      return folder;
    };
    const ofValues = (layer: number) => values(kvHeads * headDim, 10 * layer);
    const asValues = make('values', (layer) => [ofValues(layer), new Float32Array(hidden)]);
    const asOutput = make('output', (layer, weight) => {
      const spread = Float32Array.from({ length: heads * headDim }, (_, i) => {
        const kvHead = Math.floor(Math.floor(i / headDim) / (heads / kvHeads));
        return ofValues(layer)[kvHead * headDim + (i % headDim)]!;
      });
      const output = Float32Array.from({ length: hidden }, (_, row) =>
        spread.reduce((sum, value, i) => sum + value * weight[row * heads * headDim + i]!, 0),
      );
      return [new Float32Array(kvHeads * headDim), output];
    });
    const [first, second, without] = [
      await block(asValues),
      await block(asOutput),
      await block(join(FIXTURES, 'dflash-trained')),
    ];
    expect(largestError(first.logits, second.logits)).toBeLessThan(TOLERANCE);
    expect(largestError(first.logits, without.logits)).toBeGreaterThan(0.01);
  });
});
