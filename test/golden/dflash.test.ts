import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import type { DraftRequest, DraftState } from '../../src/drafter/drafter.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { SequenceCache } from '../../src/target/target.ts';
import { type GoldenTensor, readGoldenTensors } from '../support/golden-tensors.ts';
import { largestError } from './largest-error.ts';
import { DflashPair, readGoldenRuns } from './open-dflash.ts';
import { speculate } from './speculate.ts';

const NAMES = ['dflash-trained', 'dflash-random', 'dflash-yarn', 'dflash-sliding', 'dflash-noncausal'];
/** Of the largest magnitude in the reference tensor. */
const TOLERANCE = 1e-4;
const NEVER = new AbortController().signal;

let pair: DflashPair;

/** A sequence that target and drafter both follow. */
class Followed implements Disposable {
  readonly cache: SequenceCache = pair.target.openCache();
  readonly state: DraftState = pair.drafter.open();

  /** Shows tokens to the target, and their rows to the drafter; `kept` of them stay. */
  async show(tokens: readonly TokenId[], kept = tokens.length) {
    const position = this.cache.length;
    const result = await pair.target.step([{ cache: this.cache, tokens, logitsFrom: 0 }]);
    this.cache.truncate(position + kept);
    this.state.observe({ position, tokens: tokens.slice(0, kept), taps: result.taps, firstRow: 0 });
    return result;
  }

  request(anchor: TokenId, budget = pair.drafter.maxDraftTokens): DraftRequest {
    return { state: this.state, anchor, budget };
  }

  [Symbol.dispose](): void {
    this.state[Symbol.dispose]();
    this.cache[Symbol.dispose]();
  }
}

/** What a draft says, in full: ids, probabilities and logits, request by request. */
async function drafts(...requests: readonly DraftRequest[]) {
  const proposals = await pair.drafter.propose(requests, NEVER);
  const { logits } = pair.drafter.activations!;
  const vocab = logits.shape[1]!;
  let row = 0;
  return proposals.map(({ tokens, probabilities }) => {
    const own = logits.data.slice(row * vocab, (row + tokens.length) * vocab);
    row += tokens.length;
    return { tokens, probabilities, logits: [...own] };
  });
}

describe.each(NAMES)('%s', (name) => {
  const runs = readGoldenRuns(name);
  const tensors = readGoldenTensors(join(import.meta.dirname, 'fixtures', name, 'golden.safetensors'));
  const long = runs.reduce((best, run) =>
    run.prompt.length + run.output.length > best.prompt.length + best.output.length ? run : best,
  );
  const text = [...long.prompt, ...long.output];

  beforeAll(async () => {
    pair = await DflashPair.openFixture(name);
  });

  afterAll(async () => {
    await pair[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  describe.each(runs.map((_, index) => index))('run %i', (index) => {
    const run = runs[index]!;

    function expectTensor(actual: Float32Array, step: number, part: string): void {
      const expected: GoldenTensor | undefined = tensors.get(`r${index}.s${step}.${part}`);
      if (expected !== undefined)
        expect(largestError(actual, expected.data), `${part} of step ${step}`).toBeLessThan(TOLERANCE);
    }

    it('has the reference’s features, drafts and verifications in every step', async () => {
      using sequence = new Followed();
      const { hiddenSize } = pair.target.facts;
      let result = await sequence.show(run.prompt);
      let anchor = result.greedy(0, run.prompt.length - 1);
      for (const [step, golden] of run.steps.entries()) {
        expect([sequence.cache.length, anchor], `step ${step}`).toEqual([golden.start, golden.anchor]);
        // The new rows are the first of the last step: the whole prompt, or an anchor and what was accepted behind it.
        const features = Array.from({ length: golden.context_rows }, (_, row) =>
          pair.drafter.taps.flatMap((layer) => [
            ...result.taps.get(layer)!.data.subarray(row * hiddenSize, (row + 1) * hiddenSize),
          ]),
        );
        expectTensor(Float32Array.from(features.flat()), step, 'context');

        const [proposal] = await pair.drafter.propose([sequence.request(anchor, golden.draft.length)], NEVER);
        expect(proposal?.tokens, `draft of step ${step}`).toEqual(golden.draft);
        const { hidden, logits } = pair.drafter.activations!;
        expectTensor(hidden.data, step, 'hidden');
        expectTensor(logits.data, step, 'draft_logits');

        const block = [anchor, ...proposal!.tokens];
        const position = sequence.cache.length;
        result = await pair.target.step([{ cache: sequence.cache, tokens: block, logitsFrom: 0 }]);
        const agreeing = golden.draft.findIndex((token, i) => result.greedy(0, i) !== token);
        const accepted = agreeing < 0 ? golden.draft.length : agreeing;
        expect(accepted, `accepted in step ${step}`).toBe(golden.accepted);
        sequence.cache.truncate(position + accepted + 1);
        const tokens = block.slice(0, accepted + 1);
        sequence.state.observe({ position, tokens, taps: result.taps, firstRow: 0 });
        anchor = result.greedy(0, accepted);
      }
    });

    const limits = { maxTokens: run.max_new_tokens, stopTokens: run.stop_token_ids ?? [] };

    it('is decoded to the reference’s ids with its acceptance lengths', async () => {
      const result = await speculate(pair.target, pair.drafter, run.prompt, { ...limits, draftPastEnd: 1 });
      expect(result.output).toEqual(run.output);
      expect(result.rounds.map(({ emitted }) => emitted)).toEqual(run.acceptance_lengths);
      expect(result.rounds.map(({ drafted }) => drafted)).toEqual(run.steps.map(({ draft }) => draft.length));
    });

    it('is decoded to the same ids, and the same lengths in whole blocks, where the last token is left to the target', async () => {
      const result = await speculate(pair.target, pair.drafter, run.prompt, { ...limits, draftPastEnd: 0 });
      expect(result.output).toEqual(run.output);
      const shortened = result.rounds.findIndex(({ drafted }) => drafted < pair.drafter.maxDraftTokens);
      const whole = shortened < 0 ? result.rounds : result.rounds.slice(0, shortened);
      expect(whole.map(({ emitted }) => emitted)).toEqual(run.acceptance_lengths.slice(0, whole.length));
    });
  });

  it('gives each draft token its probability among all tokens', async () => {
    using sequence = new Followed();
    await sequence.show(text.slice(0, 12));
    const [draft] = await drafts(sequence.request(text[12]!));
    const vocab = pair.target.facts.vocabSize;
    expect(draft!.tokens).toHaveLength(pair.drafter.maxDraftTokens);
    for (const [slot, token] of draft!.tokens.entries()) {
      const logits = draft!.logits.slice(slot * vocab, (slot + 1) * vocab);
      const mass = logits.reduce((sum, logit) => sum + Math.exp(logit - logits[token]!), 0);
      expect(Math.max(...logits)).toBe(logits[token]);
      expect(draft!.probabilities![slot]).toBeCloseTo(1 / mass, 5);
    }
  });

  it('drafts the same whether the context came at once, in parts, or with rows that were taken back', async () => {
    const length = 24;
    using atOnce = new Followed();
    await atOnce.show(text.slice(0, length));
    const [expected] = await drafts(atOnce.request(text[length]!));

    using inParts = new Followed();
    for (let start = 0; start < length; start += 5) {
      await inParts.show(text.slice(start, Math.min(start + 5, length)));
      await drafts(inParts.request(text[start]!, start === 0 ? 0 : 3));
    }
    expect((await drafts(inParts.request(text[length]!)))[0]).toEqual(expected);

    using withRejected = new Followed();
    for (let start = 0; start < length; start += 3) {
      await withRejected.show([...text.slice(start, start + 3), 1, 2, 3], 3);
      await drafts(withRejected.request(9, 2));
    }
    expect((await drafts(withRejected.request(text[length]!)))[0]).toEqual(expected);
  });

  it('drafts the same whatever was drafted before', async () => {
    using sequence = new Followed();
    await sequence.show(text.slice(0, 14));
    const [first] = await drafts(sequence.request(text[14]!));
    for (const [anchor, budget] of [
      [1, 7],
      [200, 1],
      [33, 4],
    ] as const) {
      await drafts(sequence.request(anchor, budget));
    }
    expect((await drafts(sequence.request(text[14]!)))[0]).toEqual(first);
    const [other] = await drafts(sequence.request((text[14]! + 1) % 270));
    expect(other!.logits).not.toEqual(first!.logits);
  });

  it('drafts for several sequences at once, in any order, what it drafts for each alone', async () => {
    // The longest first: its draft is not disturbed by what shorter neighbours bring.
    const lengths = [23, 14, 9, 2];
    const budgets = [7, 3, 0, 5];
    const alone: unknown[] = [];
    for (const [i, length] of lengths.entries()) {
      using sequence = new Followed();
      await sequence.show(text.slice(0, length));
      alone.push((await drafts(sequence.request(text[length]!, budgets[i]!)))[0]);
    }
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [2, 0, 3],
      [1, 3],
    ]) {
      const sequences = order.map(() => new Followed());
      const spans = order.map((i, k) => ({ cache: sequences[k]!.cache, tokens: text.slice(0, lengths[i]), logitsFrom: 0 }));
      const result = await pair.target.step(spans);
      for (const [k, { state }] of sequences.entries()) {
        state.observe({ position: 0, tokens: spans[k]!.tokens, taps: result.taps, firstRow: result.firstRow(k) });
      }
      const together = await drafts(...order.map((i, k) => sequences[k]!.request(text[lengths[i]!]!, budgets[i]!)));
      expect(together, `order ${order}`).toEqual(order.map((i) => alone[i]));
      for (const sequence of sequences) sequence[Symbol.dispose]();
    }
  });
});
