/** A machine with known costs and drafts with known odds, on which policies can be compared without a clock. */
import { GREEDY } from '../../../../src/core/sampling-params.ts';
import { CostModel } from '../../../../src/decode/draft-length/cost-model.ts';
import type { LengthPolicy } from '../../../../src/decode/draft-length/length-policy.ts';
import type { Sequence } from '../../../../src/decode/sequence.ts';

export interface Machine {
  /** Milliseconds of a step. */
  readonly stepMs: (rows: number, sequences: number) => number;
  /** Milliseconds of a draft for so many sequences of so many tokens together. */
  readonly draftMs: (sequences: number, tokens: number) => number;
  /** Milliseconds of each row that a draft takes in first. */
  readonly contextMs: number;
  /** Probability that a draft token with this confidence is accepted. */
  readonly accepted: (confidence: number) => number;
  /** Range of confidences, by slot. */
  readonly confidence: (slot: number, random: number) => number;
  /** Relative spread of single timings. */
  readonly noise: number;
  readonly longest: number;
}

/** Costs as a server measures them: with one sequence at its start, and with several in an idle moment. */
export function measured({ stepMs, draftMs, contextMs, longest }: Machine, several = [2, 4, 8]): CostModel {
  const steps = (sequences: number, rows: readonly number[]) =>
    rows.map((count) => ({ rows: count, ms: stepMs(count, sequences) }));
  const drafts = (sequences: number) =>
    [1, longest].map((tokens) => ({ rows: tokens * sequences, ms: draftMs(sequences, tokens * sequences) }));
  const costs = new CostModel(steps(1, [1, 2, 3, 5, 9, 16, 32]), drafts(1), contextMs);
  for (const count of several) {
    const rows = [1, 2, 4].map((each) => each * count);
    costs.measured(count, steps(count, rows), drafts(count));
  }
  return costs;
}

/** Tokens per millisecond of `waves` times `clients` answers of `length` tokens each, behind prompts that are computed. */
export function throughput(
  machine: Machine,
  policy: LengthPolicy,
  { clients, prompt, length, waves }: { clients: number; prompt: number; length: number; waves: number },
  seed = 1,
): number {
  const random = generator(seed);
  const noisy = (ms: number) => ms * (1 + machine.noise * (2 * random() - 1));
  let ms = 0;
  for (let wave = 0; wave < waves; wave++) {
    const left = new Map<Sequence, { room: number; waiting: number }>();
    for (let i = 0; i < clients; i++) {
      left.set({ sampling: GREEDY } as unknown as Sequence, { room: length, waiting: prompt });
    }
    while (left.size > 0) {
      const step = { decoding: left.size };
      const able = [...left].map(([sequence, { room, waiting }]) => {
        return { sequence, budget: Math.min(machine.longest, room - 1), waiting };
      });
      const asked = policy.ask(able, step);
      const drafts = able.map(({ sequence }, i) => {
        const probabilities = Array.from({ length: asked[i]!.tokens }, (_, slot) => machine.confidence(slot, random()));
        return { sequence, proposal: { tokens: probabilities.map((_, slot) => slot), probabilities } };
      });
      const drafting = able.filter((_, i) => asked[i]!.tokens > 0);
      const tokens = asked.reduce((sum, limit) => sum + limit.tokens, 0);
      const waiting = drafting.reduce((sum, own) => sum + own.waiting, 0);
      const draftMs =
        drafting.length === 0
          ? 0
          : noisy(machine.draftMs(drafting.length, tokens) + machine.contextMs * (waiting - drafting.length));
      for (const { sequence } of drafting) left.get(sequence)!.waiting = 0;
      const kept = policy.trim(drafts, step, draftMs);
      const verified = drafts.map(({ sequence, proposal }, i) => {
        const drafted = kept[i]!.tokens;
        let accepted = 0;
        while (accepted < drafted && random() < machine.accepted(proposal.probabilities[accepted]!)) accepted++;
        const round = { drafted, evaluated: Math.min(accepted + 1, drafted), accepted, emitted: accepted + 1 };
        return { sequence, proposal, round };
      });
      const rows = verified.reduce((sum, { round }) => sum + 1 + round.drafted, 0);
      const stepMs = noisy(machine.stepMs(rows, left.size));
      policy.learnStep(rows, left.size, stepMs);
      policy.learn(verified);
      ms += draftMs + stepMs;
      for (const { sequence, round } of verified) {
        const own = left.get(sequence)!;
        own.room -= round.emitted;
        own.waiting += round.emitted;
        if (own.room <= 0) left.delete(sequence);
      }
    }
  }
  return (clients * length * waves) / ms;
}

/** Drafts of one length, always. */
export function always(tokens: number): LengthPolicy {
  return {
    ask: (sequences) => sequences.map(({ budget }) => ({ tokens: Math.min(tokens, budget), reason: null })),
    trim: (drafts) => drafts.map(({ proposal }) => ({ tokens: proposal.tokens.length, reason: null })),
    learn: () => undefined,
    learnStep: () => undefined,
  };
}

/** Mulberry32. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
