/** What the table of supported models states, measured on the reference outputs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import type { TokenId } from '../../src/core/token.ts';
import { DraftModelDrafter } from '../../src/drafter/draft-model/draft-model-drafter.ts';
import type { Drafter } from '../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../src/drafter/ngram/ngram-drafter.ts';
import { loadDraftDecoder } from '../../src/engine/load-draft-decoder.ts';
import { CPU } from '../../src/onnx/device.ts';
import type { Target } from '../../src/target/target.ts';
import { readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget } from '../support/load-test-target.ts';
import { testRuntime } from '../support/runtime.ts';
import { largestError } from './largest-error.ts';
import { DflashPair, type GoldenRun, readGoldenRuns } from './open-dflash.ts';
import { speculate, speculateAll } from './speculate.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

interface TargetGolden {
  readonly cases: readonly { readonly prompt: readonly TokenId[]; readonly greedy: readonly TokenId[] }[];
}

export interface MeasuredTarget {
  /** Of the logits, as a share of the largest; the largest of all prompts. */
  readonly error: number;
  /** Greedy tokens up to the first that differs from the reference, over all prompts. */
  readonly idsEqual: number;
  readonly ids: number;
  /** Whether speculation gave the tokens that plain decoding gave. */
  readonly sameText: { readonly ngram: boolean; readonly draftModel: boolean };
}

export async function measureTarget(name: string, format: WeightFormat, cacheDir: string): Promise<MeasuredTarget> {
  const folder = join(FIXTURES, name);
  const golden: TargetGolden = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8'));
  const tensors = readGoldenTensors(join(folder, 'golden.safetensors'));
  const { target } = await loadTestTarget({ folder, cacheDir, format });
  let error = 0;
  let idsEqual = 0;
  const plain: TokenId[][] = [];
  for (const [index, { prompt, greedy }] of golden.cases.entries()) {
    const logits = tensors.get(`${index}.logits`)!;
    const [rows, vocab] = logits.shape as [number, number];
    using cache = target.openCache();
    let result = await target.step([{ cache, tokens: prompt, logitsFrom: prompt.length - rows }]);
    for (let row = 0; row < rows; row++) {
      const expected = logits.data.subarray(row * vocab, (row + 1) * vocab);
      error = Math.max(error, largestError(result.logits(0, prompt.length - rows + row), expected));
    }
    const answer = [result.greedy(0, prompt.length - 1)];
    while (answer.length < greedy.length) {
      result = await target.step([{ cache, tokens: answer.slice(-1), logitsFrom: 0 }]);
      answer.push(result.greedy(0, 0));
    }
    plain.push(answer);
    const parted = answer.findIndex((token, i) => token !== greedy[i]);
    idsEqual += parted < 0 ? greedy.length : parted;
  }
  const prompts = golden.cases.map(({ prompt }) => prompt);
  const ngram = await speculatesTo(plain, target, new NgramDrafter({ maxDraftTokens: 6, maxMatch: 8, minMatch: 1 }), prompts);
  const common = { runtime: testRuntime(), device: CPU, format, cacheDir, maxSequences: 4, maxRows: 64 };
  // Any model of the same vocabulary will do; a hybrid cannot draft itself.
  const decoder = await loadDraftDecoder({
    ...common,
    folder: join(FIXTURES, 'dflash-target'),
    maxContext: target.facts.maxContext,
  });
  const draftModel = await speculatesTo(plain, target, new DraftModelDrafter(decoder, 3), prompts);
  await target[Symbol.asyncDispose]();
  const ids = golden.cases.reduce((sum, { greedy }) => sum + greedy.length, 0);
  return { error, idsEqual, ids, sameText: { ngram, draftModel } };
}

/** @param drafter disposed of */
async function speculatesTo(
  plain: readonly (readonly TokenId[])[],
  target: Target,
  drafter: Drafter,
  prompts: readonly (readonly TokenId[])[],
): Promise<boolean> {
  const limits = { maxTokens: plain[0]!.length, stopTokens: [], draftPastEnd: 0 };
  const runs = await speculateAll(target, drafter, prompts, limits);
  await drafter[Symbol.asyncDispose]();
  return runs.every(({ output }, i) => output.join() === plain[i]!.join());
}

export interface MeasuredDrafter {
  readonly layout: string;
  /** Of the drafter's logits, as a share of the largest; the largest of all blocks that the fixture has in full. */
  readonly error: number;
  /** Draft tokens that are the reference's, in every step of every run. */
  readonly draftsEqual: number;
  readonly drafts: number;
  /** Runs with the reference's tokens and number of tokens in every round. */
  readonly runsEqual: number;
  readonly runs: number;
}

const NEVER = new AbortController().signal;

export async function measureDrafter(name: string): Promise<MeasuredDrafter> {
  const runs = readGoldenRuns(name);
  const tensors = readGoldenTensors(join(FIXTURES, name, 'golden.safetensors'));
  await using pair = await DflashPair.openFixture(name);
  let error = 0;
  let draftsEqual = 0;
  let drafts = 0;
  let runsEqual = 0;
  const draft = async (context: readonly TokenId[], anchor: TokenId, budget: number) => {
    using cache = pair.target.openCache();
    using state = pair.drafter.open();
    const { taps } = await pair.target.step([{ cache, tokens: context, logitsFrom: context.length }]);
    state.observe({ position: 0, tokens: context, taps, firstRow: 0 });
    const [proposal] = await pair.drafter.propose([{ state, anchor, budget }], NEVER);
    return proposal!.tokens;
  };
  const compareLogits = (expected: Float32Array) => {
    error = Math.max(error, largestError(pair.drafter.activations!.logits.data, expected));
  };

  for (const [index, run] of runs.entries()) {
    const text = [...run.prompt, ...run.output];
    for (const [step, golden] of run.steps.entries()) {
      const tokens = await draft(text.slice(0, golden.start), golden.anchor, golden.draft.length);
      draftsEqual += tokens.filter((token, i) => token === golden.draft[i]).length;
      drafts += golden.draft.length;
      const logits = tensors.get(`r${index}.s${step}.draft_logits`);
      if (logits !== undefined && golden.draft.length > 0) compareLogits(logits.data);
    }
    runsEqual += (await runsAs(pair, run)) ? 1 : 0;
  }
  await compareBlocks(name, tensors.get('logits'), draft, compareLogits);
  return { layout: pair.layout, error, draftsEqual, drafts, runsEqual, runs: runs.length };
}

async function runsAs({ target, drafter }: DflashPair, run: GoldenRun): Promise<boolean> {
  const limits = { maxTokens: run.max_new_tokens, stopTokens: run.stop_token_ids ?? [], draftPastEnd: 1 };
  const { output, rounds } = await speculate(target, drafter, run.prompt, limits);
  return output.join() === run.output.join() && rounds.map(({ emitted }) => emitted).join() === run.acceptance_lengths.join();
}

/** Blocks behind each anchor of one text, where a fixture has them. */
async function compareBlocks(
  name: string,
  logits: { readonly shape: readonly number[]; readonly data: Float32Array } | undefined,
  draft: (context: readonly TokenId[], anchor: TokenId, budget: number) => Promise<readonly TokenId[]>,
  compareLogits: (expected: Float32Array) => void,
): Promise<void> {
  if (logits === undefined) return;
  const golden: { readonly input_ids: readonly TokenId[]; readonly anchors: readonly number[] } = JSON.parse(
    readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8'),
  );
  const [, slots, rows] = logits.shape as [number, number, number];
  for (const [index, anchor] of golden.anchors.entries()) {
    await draft(golden.input_ids.slice(0, anchor), golden.input_ids[anchor]!, slots - 1);
    compareLogits(logits.data.subarray((index * slots + 1) * rows, (index + 1) * slots * rows));
  }
}

export interface MeasuredPair {
  readonly layout: string;
  /** Whether any draft token was accepted: without, equal texts would say little. */
  readonly accepted: boolean;
  /** Whether speculation gave the tokens that plain decoding gave in the same format. */
  readonly sameText: boolean;
}

/** A drafter and its target in a format other than the reference's. */
export async function measurePair(name: string, format: WeightFormat): Promise<MeasuredPair> {
  await using pair = await DflashPair.openFixture(name, undefined, { format, device: CPU });
  const { target, drafter, layout } = pair;
  let accepted = 0;
  let sameText = true;
  for (const { prompt, max_new_tokens: maxTokens } of readGoldenRuns(name)) {
    const { output, rounds } = await speculate(target, drafter, prompt, { maxTokens, stopTokens: [], draftPastEnd: 0 });
    accepted += rounds.reduce((sum, round) => sum + round.accepted, 0);
    sameText &&= output.join() === (await plainAnswer(target, prompt, maxTokens)).join();
  }
  return { layout, accepted: accepted > 0, sameText };
}

async function plainAnswer(target: Target, prompt: readonly TokenId[], length: number): Promise<TokenId[]> {
  using cache = target.openCache();
  const answer: TokenId[] = [];
  for (let tokens = prompt; answer.length < length; tokens = answer.slice(-1)) {
    const last = tokens.length - 1;
    const result = await target.step([{ cache, tokens, logitsFrom: last }]);
    answer.push(result.greedy(0, last));
  }
  return answer;
}
