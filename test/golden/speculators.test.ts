import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
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
