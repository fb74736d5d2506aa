import { GREEDY } from '../../src/core/sampling-params.ts';
import type { RoundRecord } from '../../src/core/speculation-record.ts';
import type { TokenId } from '../../src/core/token.ts';
import { FIXED_LENGTH } from '../../src/decode/draft-length/fixed-length.ts';
import { decodeRound } from '../../src/decode/round.ts';
import { Sequence } from '../../src/decode/sequence.ts';
import type { Drafter } from '../../src/drafter/drafter.ts';
import type { Target } from '../../src/target/target.ts';

export interface SpeculationLimits {
  readonly maxTokens: number;
  readonly stopTokens: readonly TokenId[];
  /**
   * Drafted tokens that may stand behind the next to last one allowed. 0 is what the engine does, as the target's own
   * choice follows a draft in any case and takes the last place; reference implementations draft further, and a block
   * that is shorter is another draft.
   */
  readonly draftPastEnd: number;
}

export interface SpeculativeRun {
  readonly output: readonly TokenId[];
  /** The first token, which the prompt's own rows choose, belongs to no round. */
  readonly rounds: readonly RoundRecord[];
}

/** Greedy answers by rounds of speculative decoding, as many at once as the target can serve. */
export async function speculateAll(
  target: Target,
  drafter: Drafter,
  prompts: readonly (readonly TokenId[])[],
  limits: SpeculationLimits,
): Promise<readonly SpeculativeRun[]> {
  const waiting = [...prompts.entries()];
  const running = new Map<Sequence, number>();
  const runs: SpeculativeRun[] = [];
  while (waiting.length + running.size > 0) {
    while (running.size < target.maxSequences && waiting.length > 0) {
      const [index, prompt] = waiting.shift()!;
      running.set(open(target, drafter, prompt, limits), index);
    }
    await decodeRound(target, [...running.keys()], new AbortController().signal);
    for (const [sequence, index] of running) {
      if (sequence.drafterError !== null) throw new Error(sequence.drafterError);
      if (sequence.ending === null) continue;
      runs[index] = { output: sequence.tokens.slice(sequence.promptLength), rounds: sequence.rounds };
      sequence[Symbol.dispose]();
      running.delete(sequence);
    }
  }
  return runs;
}

export async function speculate(
  target: Target,
  drafter: Drafter,
  prompt: readonly TokenId[],
  limits: SpeculationLimits,
): Promise<SpeculativeRun> {
  const [run] = await speculateAll(target, drafter, [prompt], limits);
  return run!;
}

function open(target: Target, drafter: Drafter, promptTokens: readonly TokenId[], limits: SpeculationLimits): Sequence {
  const { maxTokens, stopTokens, draftPastEnd } = limits;
  let emitted = 0;
  return new Sequence({
    promptTokens,
    sampling: GREEDY,
    stopRule: {
      push(token) {
        emitted++;
        if (stopTokens.includes(token)) return { reason: 'stop', stopReason: token };
        return emitted === maxTokens ? { reason: 'length', stopReason: null } : null;
      },
    },
    maxTokens: maxTokens + draftPastEnd,
    limitedBy: 'max-tokens',
    cache: target.openCache(),
    drafting: { drafter, state: drafter.open(), limit: drafter.maxDraftTokens, lengths: FIXED_LENGTH },
  });
}
