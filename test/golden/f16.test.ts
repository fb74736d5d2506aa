/**
 * The f16 graphs, as they are for CUDA, computed on a CPU and compared with the references in f32. The bf16 ones differ in
 * nothing but the type.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { argmax } from '../../src/sampling/argmax.ts';
import { readModelConfig } from '../../src/target/hf-config.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import expected from './fixtures/testbed-acceptance/expected.json' with { type: 'json' };
import { largestError } from './largest-error.ts';
import { DflashPair, IN_F16, readGoldenRuns } from './open-dflash.ts';
import { type SpeculativeRun, speculateAll } from './speculate.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

/** Of the largest logit: the next of 1, 2, 5, 10 above what was measured. Models in which nothing is learned enlarge rounding. */
const TOLERANCES: Readonly<Record<string, number>> = {
  'llama-tied': 2e-2,
  'llama-rope3': 2e-2,
  'qwen2-bias': 5e-2,
  'qwen3-untied': 5e-3,
  'qwen3-bf16': 2e-3,
  'qwen3-yarn': 5e-3,
  'qwen3-moe': 1e-2,
  'qwen3_5-text': 5e-2,
  'qwen3_5-nested': 5e-2,
};

interface Golden {
  readonly taps: readonly number[];
  readonly cases: readonly { readonly prompt: readonly TokenId[] }[];
}

describe.each(Object.entries(TOLERANCES))('%s in f16', (name, tolerance) => {
  const folder = join(FIXTURES, name);
  const golden: Golden = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8'));
  const tensors = readGoldenTensors(join(folder, 'golden.safetensors'));
  const temporary = new TemporaryFolder();
  let target: OnnxTarget;

  beforeAll(async () => {
    ({ target } = await loadTestTarget({ folder, cacheDir: temporary.path, ...IN_F16 }));
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    await temporary[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it(`computes logits within ${tolerance}, and the reference’s token wherever that leads by more`, async () => {
    for (const [index, { prompt }] of golden.cases.entries()) {
      const logits = tensors.get(`${index}.logits`)!;
      const [rows, vocab] = logits.shape as [number, number];
      using cache = target.openCache();
      const result = await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - rows }]);
      for (let row = 0; row < rows; row++) {
        const reference = logits.data.subarray(row * vocab, (row + 1) * vocab);
        const at = prompt.length - rows + row;
        expect(largestError(result.logits(0, at), reference), `case ${index}, row ${row}`).toBeLessThan(tolerance);
        const [first, second] = [...reference].sort((a, b) => b - a) as [number, number];
        const magnitude = reference.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        if (first - second > 2 * tolerance * magnitude) expect(result.greedy(0, at)).toBe(argmax(reference));
      }
    }
  });

  it('keeps a position in half the bytes', () => {
    const { attention, layers } = readModelConfig(folder).spec;
    const attending = layers.filter(({ mixer }) => mixer === 'attention').length;
    expect(target.cacheBytesPerPosition).toBe(2 * 2 * attending * attention.kvHeads * attention.headDim);
  });
});

describe('the trained pair of the testbed in f16', () => {
  const folder = join(FIXTURES, 'testbed');
  let pair: DflashPair;
  let runs: readonly SpeculativeRun[];

  beforeAll(async () => {
    pair = await DflashPair.open(join(folder, 'drafter'), join(folder, 'target'), undefined, IN_F16);
    const prompts = expected.golden.map(({ prompt_ids }) => prompt_ids);
    runs = await speculateAll(pair.target, pair.drafter, prompts, {
      maxTokens: 128,
      stopTokens: expected.stop_ids,
      draftPastEnd: 7,
    });
  });

  afterAll(async () => {
    await pair[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it.each(expected.golden.map(({ id }, index) => ({ id, index })))('answers $id with the reference’s ids', ({ index }) => {
    expect(runs[index]!.output.slice(0, expected.max_new_tokens)).toEqual(expected.golden[index]!.greedy_ids);
  });

  it('has as many of its drafts accepted in as good as every round', () => {
    const rounds = expected.golden.flatMap(({ accepted }, index) =>
      accepted.slice(0, -1).map((reference, round) => runs[index]!.rounds[round]!.accepted === reference),
    );
    const agreeing = rounds.filter((same) => same).length;
    expect(agreeing / rounds.length).toBeGreaterThan(0.98);
  });
});

describe.each(['dflash-sliding', 'dflash-noncausal', 'dflash-yarn', 'dflash-trained', 'speculators-reduced'])(
  '%s in f16',
  (name) => {
    it('drafts as the reference', async () => {
      await using pair = await DflashPair.openFixture(name, undefined, IN_F16);
      let agreeing = 0;
      let drafted = 0;
      for (const run of readGoldenRuns(name)) {
        using cache = pair.target.openCache();
        using state = pair.drafter.open();
        let tokens = run.prompt;
        for (const step of run.steps) {
          const position = cache.length;
          const { taps } = await pair.target.step([{ cache, tokens, logitsFrom: tokens.length }]);
          state.observe({ position, tokens, taps, firstRow: 0 });
          const request = { state, anchor: step.anchor, budget: step.draft.length };
          const [proposal] = await pair.drafter.propose([request], new AbortController().signal);
          agreeing += step.draft.filter((token, i) => proposal!.tokens[i] === token).length;
          drafted += step.draft.length;
          tokens = [step.anchor, ...step.draft.slice(0, step.accepted)];
        }
      }
      expect(agreeing / drafted).toBeGreaterThan(0.98);
    });
  },
);
