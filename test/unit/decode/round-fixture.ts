/** Sequences on a scripted target, decoded round by round, with the invariants looked at behind each round. */

import { expect } from 'vitest';
import { GREEDY, type SamplingParams } from '../../../src/core/sampling-params.ts';
import type { TokenId } from '../../../src/core/token.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { LengthPolicy } from '../../../src/decode/draft-length/length-policy.ts';
import { decodeRound, type RoundOutcome } from '../../../src/decode/round.ts';
import { Sequence, type SequenceOptions } from '../../../src/decode/sequence.ts';
import type { CheckedDrafter, CheckedState } from '../../support/checked-drafter.ts';
import { plainDecode } from '../../support/plain-decode.ts';
import type { NextLogits, ScriptedTarget } from '../../support/scripted-target.ts';
import { stopsAt } from './sequence-fixture.ts';

export interface Asked {
  readonly prompt: readonly TokenId[];
  readonly sampling?: SamplingParams;
  readonly maxTokens?: number;
  readonly stopTokens?: readonly TokenId[];
  readonly draftLimit?: number;
  readonly lengths?: LengthPolicy;
}

export function start(target: ScriptedTarget, asked: Asked, drafter: CheckedDrafter | null): Sequence {
  const drafting: SequenceOptions['drafting'] =
    drafter === null
      ? 'no-drafter'
      : {
          drafter,
          state: drafter.open(),
          limit: asked.draftLimit ?? drafter.maxDraftTokens,
          lengths: asked.lengths ?? FIXED_LENGTH,
        };
  return new Sequence({
    promptTokens: asked.prompt,
    sampling: asked.sampling ?? GREEDY,
    stopRule: stopsAt(...(asked.stopTokens ?? [])),
    maxTokens: asked.maxTokens ?? 12,
    limitedBy: 'max-tokens',
    cache: target.openCache(),
    drafting,
  });
}

/** What plain decoding answers. */
export function expectedAnswer(nextLogits: NextLogits, asked: Asked): TokenId[] {
  return plainDecode(nextLogits, { sampling: GREEDY, maxTokens: 12, stopTokens: [], ...asked });
}

export function answer(sequence: Sequence): readonly TokenId[] {
  return sequence.tokens.slice(sequence.promptLength);
}

/** Decodes until all have ended. */
export async function finish(target: ScriptedTarget, sequences: readonly Sequence[]): Promise<RoundOutcome[]> {
  const outcomes: RoundOutcome[] = [];
  for (;;) {
    const running = sequences.filter(({ ending }) => ending === null);
    if (running.length === 0) return outcomes;
    outcomes.push(await round(target, running));
  }
}

/** One round, behind which everything must be in order. */
export async function round(
  target: ScriptedTarget,
  sequences: readonly Sequence[],
  signal = new AbortController().signal,
): Promise<RoundOutcome> {
  const before = new Map(sequences.map((sequence) => [sequence, sequence.tokens.length]));
  const outcome = await decodeRound(target, sequences, signal);
  expect(target.stepRows.at(-1)).toBeLessThanOrEqual(target.maxRows);
  for (const { sequence, emitted, round, shortBy, promptRows } of outcome.sequences) {
    expect(emitted).toEqual(sequence.tokens.slice(before.get(sequence)));
    expect(promptRows > 0).toBe(round === null);
    if (round !== null && round.drafted === 0) expect(shortBy).not.toBeNull();
    if (round === null) continue;
    const rejected = round.evaluated - round.accepted;
    const discarded = round.drafted - round.evaluated;
    expect(rejected === 0 || rejected === 1).toBe(true);
    expect(discarded).toBeGreaterThanOrEqual(0);
    expect(round.emitted).toBe(emitted.length);
    expect(round.emitted).toBeGreaterThanOrEqual(1);
    expect(round.emitted).toBeLessThanOrEqual(round.drafted + 1);
    expect([round.accepted, round.accepted + 1]).toContain(round.emitted);
    expect(sequence.rounds.at(-1)).toEqual(round);
  }
  for (const sequence of sequences) expectInOrder(sequence);
  return outcome;
}

/** The invariants between rounds. */
export function expectInOrder(sequence: Sequence): void {
  const { cache, tokens, drafting, ending, emitted } = sequence;
  if (ending === null && emitted > 0) expect(cache.length).toBe(tokens.length - 1);
  if (ending === null) expect(sequence.uncached).toBeGreaterThan(0);
  if (drafting === null) return;
  expect((drafting.state as CheckedState).tokens).toEqual(tokens.slice(0, cache.length));
  expect((drafting.drafter as CheckedDrafter).misuses).toEqual([]);
}
