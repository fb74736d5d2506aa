/** The drafter in the repository against the reference's record of it, and against the acceptance that it is known to have. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acceptanceStatistics } from '../../src/core/acceptance-statistics.ts';
import type { TokenId } from '../../src/core/token.ts';
import { readDflashConfig } from '../../src/drafter/dflash/dflash-config.ts';
import type { DflashDrafter } from '../../src/drafter/dflash/dflash-drafter.ts';
import { loadDflash } from '../../src/drafter/dflash/load-dflash.ts';
import { borrowTarget } from '../../src/engine/borrow-target.ts';
import { CPU } from '../../src/onnx/device.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import golden from '../golden/fixtures/smollm2-dflash/golden.json' with { type: 'json' };
import { type Answer, askAll, EMBEDDED_DRAFTER, EMBEDDED_TARGET, openEmbedded } from '../support/embedded-pair.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { PROMPT_KINDS, PROMPTS } from '../support/prompts.ts';
import { testRuntime } from '../support/runtime.ts';

const BLOCK_SIZES = ['3', '4', '5', '6'] as const;

const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

/**
 * The record was made with float16 weights, from which the int8 weights in the repository are 0.5 % away. Computed on
 * those float16 weights, all 867 drafts and all 1312 ids come out as recorded; here most do.
 */
describe('the rounds of the reference', () => {
  /** One round of the record, run again. */
  interface Round {
    readonly blockSize: string;
    readonly draftAgrees: boolean;
    readonly accepted: number;
    readonly recorded: number;
    /** Whether all ids up to this round were the recorded ones. */
    readonly idsAgreed: boolean;
    readonly ids: number;
    readonly idsAgreeing: number;
  }
  const rounds: Round[] = [];
  let target: OnnxTarget;
  let drafter: DflashDrafter;

  /** The same answer with each block size at once: four sequences that are given the recorded ids. */
  async function replay({ prompt_ids, greedy_ids, cycles }: (typeof golden)[number]): Promise<void> {
    const all: readonly TokenId[] = [...prompt_ids, ...greedy_ids];
    const sequences = BLOCK_SIZES.map((blockSize) => ({
      blockSize,
      cycles: [...cycles[blockSize]],
      cache: target.openCache(),
      state: drafter.open(),
      pending: prompt_ids as readonly TokenId[],
      idsAgreed: true,
    }));
    for (let running = sequences; running.length > 0; running = running.filter(({ cycles }) => cycles.length > 0)) {
      const starts = running.map(({ cache }) => cache.length);
      const spans = running.map(({ cache, pending }) => ({ cache, tokens: pending, logitsFrom: 0 }));
      const result = await target.step(spans);
      const checks = running.map((sequence, span) => {
        const position = starts[span]!;
        const tokens = sequence.pending;
        sequence.state.observe({ position, tokens, taps: result.taps, firstRow: result.firstRow(span) });
        // Within the prompt nobody chose the ids.
        const first = Math.max(prompt_ids.length - 1 - position, 0);
        const next = tokens.map((_, row) => all[position + row + 1]);
        const checked = next.slice(first).filter((id) => id !== undefined);
        const agreeing = checked.filter((id, i) => result.greedy(span, first + i) === id).length;
        sequence.idsAgreed &&= agreeing === checked.length;
        return { ids: checked.length, idsAgreeing: agreeing };
      });
      const proposals = await drafter.propose(
        running.map(({ state, cache, blockSize }) => ({ state, anchor: all[cache.length]!, budget: Number(blockSize) - 1 })),
        new AbortController().signal,
      );
      for (const [i, sequence] of running.entries()) {
        const cycle = sequence.cycles.shift()!;
        expect(sequence.cache.length).toBe(cycle.start);
        const { tokens } = proposals[i]!;
        const wrong = tokens.findIndex((token, slot) => token !== all[cycle.start + 1 + slot]);
        rounds.push({
          blockSize: sequence.blockSize,
          draftAgrees: tokens.join() === cycle.draft.join(),
          accepted: wrong < 0 ? tokens.length : wrong,
          recorded: cycle.accepted,
          idsAgreed: sequence.idsAgreed,
          ...checks[i]!,
        });
        sequence.pending = all.slice(cycle.start, cycle.start + 1 + cycle.accepted);
      }
    }
    for (const { cache, state } of sequences) {
      cache[Symbol.dispose]();
      state[Symbol.dispose]();
    }
  }

  beforeAll(async () => {
    const cacheDir = temporary.path;
    const config = readDflashConfig(EMBEDDED_DRAFTER);
    const options = { folder: EMBEDDED_TARGET, cacheDir, maxContext: 256, maxSequences: BLOCK_SIZES.length };
    const loaded = await loadTestTarget({ ...options, taps: config.taps });
    target = loaded.target;
    const common = { runtime: testRuntime(), device: CPU, format: 'f32' as const, cacheDir };
    drafter = await loadDflash({ ...common, folder: EMBEDDED_DRAFTER, config, target: borrowTarget(loaded) });
    for (const run of golden) await replay(run);
  });

  afterAll(async () => {
    await drafter[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it('have the recorded drafts as long as the ids are the recorded ones, in 300 rounds or more', () => {
    const comparable = rounds.filter(({ idsAgreed }) => idsAgreed);
    expect(comparable.length).toBeGreaterThan(300);
    expect(comparable.filter(({ draftAgrees }) => draftAgrees).length / comparable.length).toBeGreaterThan(0.92);
  });

  it('have the recorded drafts and ids in nearly all rounds, when the recorded ids are given', () => {
    expect(rounds).toHaveLength(867);
    expect(rounds.filter(({ draftAgrees }) => draftAgrees).length / rounds.length).toBeGreaterThan(0.9);
    const ids = rounds.reduce((sum, round) => sum + round.ids, 0);
    const agreeing = rounds.reduce((sum, round) => sum + round.idsAgreeing, 0);
    expect(agreeing / ids).toBeGreaterThan(0.96);
  });

  it.each(BLOCK_SIZES)('accept as much as recorded in blocks of %s', (blockSize) => {
    const own = rounds.filter((round) => round.blockSize === blockSize);
    const accepted = own.reduce((sum, round) => sum + round.accepted, 0);
    const recorded = own.reduce((sum, round) => sum + round.recorded, 0);
    expect(Math.abs(accepted - recorded) / own.length).toBeLessThan(0.05);
  });
});

/** Mean over the kinds of prompts, by block size, as the drafter's makers measured it on prompts of their own. */
const KNOWN_ACCEPTANCE_LENGTH = { 3: 1.56, 4: 1.59, 5: 1.6, 6: 1.6 } as const;

describe('the acceptance length in int8', () => {
  const prompts = PROMPTS.filter((_, i) => i % 2 === 0);
  const byBlockSize = new Map<number, { readonly answers: readonly Answer[]; readonly mean: number }>();

  beforeAll(async () => {
    const { engine } = await openEmbedded({ drafter: 'dflash', weights: 'int8', cacheDir: temporary.path });
    for (const blockSize of BLOCK_SIZES.map(Number)) {
      const questions = prompts.map(({ text }) => ({ prompt: text, maxTokens: 48, draftTokens: blockSize - 1 }));
      const answers = await askAll(engine, questions);
      const lengths = PROMPT_KINDS.map((kind) => {
        const members = answers.filter((_, i) => prompts[i]!.kind === kind);
        // The last round of an answer is cut off where it ends.
        const whole = members.map(({ finish }) => finish.speculation.rounds.slice(0, -1));
        return acceptanceStatistics(whole, blockSize - 1).meanAcceptanceLength!;
      });
      byBlockSize.set(blockSize, { answers, mean: lengths.reduce((sum, length) => sum + length, 0) / lengths.length });
    }
    await engine[Symbol.asyncDispose]();
  });

  it('is about what the drafter is known for, in blocks of every size', () => {
    for (const [blockSize, known] of Object.entries(KNOWN_ACCEPTANCE_LENGTH)) {
      expect(byBlockSize.get(Number(blockSize))!.mean, `blocks of ${blockSize}`).toBeGreaterThan(known - 0.2);
    }
  });

  it('does not fall with longer blocks, nor does their text change', () => {
    for (const [short, long] of [
      [3, 4],
      [4, 5],
      [5, 6],
    ] as const) {
      const [shorter, longer] = [byBlockSize.get(short)!, byBlockSize.get(long)!];
      expect(longer.mean).toBeGreaterThan(shorter.mean - 0.03);
      expect(longer.answers.map(({ tokens }) => tokens)).toEqual(shorter.answers.map(({ tokens }) => tokens));
    }
  });
});
