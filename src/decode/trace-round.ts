import type { DraftedToken, RoundTrace } from '../core/round-trace.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { Position, TokenId } from '../core/token.ts';
import type { Proposal } from '../drafter/drafter.ts';
import { logPartition, rankOf } from '../sampling/row-measures.ts';

export interface TracedRound {
  /** Of the anchor. */
  readonly position: Position;
  readonly anchor: TokenId;
  readonly draft: readonly TokenId[];
  readonly proposal: Proposal | null;
  readonly emitted: readonly TokenId[];
  readonly round: RoundRecord;
  readonly shortBy: ShortDraftReason | null;
  readonly temperature: number;
  /** The target's logits behind the first `index` draft tokens; valid until its next step. */
  readonly logits: (index: number) => Float32Array;
}

/** Reads what the target's logits say of the tokens of a round that has been decided. */
export function traceRound(traced: TracedRound): RoundTrace {
  const { position, anchor, draft, proposal, emitted, round, shortBy, logits } = traced;
  const temperature = traced.temperature === 0 ? 1 : traced.temperature;
  const rows = Array.from({ length: Math.max(round.evaluated, emitted.length) }, (_, index) => {
    const row = logits(index);
    return { row, partition: logPartition(row, temperature) };
  });
  const probability = (index: number, token: TokenId): number => {
    const { row, partition } = rows[index]!;
    return Math.exp(row[token]! / temperature - partition);
  };
  const rejected = round.evaluated > round.accepted ? round.accepted : null;
  return {
    position,
    anchor,
    drafted: draft.map(
      (token, slot): DraftedToken => ({
        token,
        confidence: proposal?.probabilities?.[slot] ?? null,
        targetProbability: slot < round.evaluated ? probability(slot, token) : null,
        outcome: slot < round.accepted ? 'accepted' : slot < round.evaluated ? 'rejected' : 'discarded',
      }),
    ),
    emitted: emitted.map((token, index) => ({ token, targetProbability: probability(index, token) })),
    rejectedRank: rejected === null ? null : rankOf(rows[rejected]!.row, draft[rejected]!),
    end: endOf(round),
    shortBy,
  };
}

function endOf({ drafted, evaluated, accepted, emitted }: RoundRecord): RoundTrace['end'] {
  if (drafted === 0) return 'noDraft';
  if (evaluated > accepted) return 'rejected';
  return accepted === drafted && emitted > accepted ? 'whole' : 'answerEnded';
}
