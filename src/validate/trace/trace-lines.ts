/** Rounds of served answers as JSON lines, for people and for viewers. */
import type { Phase } from '../../core/round-trace.ts';
import type { TokenId } from '../../core/token.ts';
import { phasesOf } from '../../text/phases.ts';
import { loadTokenizer, type Tokenizer } from '../../text/tokenizer.ts';
import type { MeasuredRound, ServedAnswer } from '../measure/answer-records.ts';
import { endOf } from '../report/served-splits.ts';

export interface TracedToken {
  readonly token: TokenId;
  readonly text: string;
}

/** One verification. Probabilities are the target's at the request's temperature (at 1 when it is 0). */
export interface TraceLine {
  readonly id: string;
  readonly category: string;
  readonly temperature: number;
  readonly round: number;
  /** Position of the anchor in the sequence. */
  readonly position: number;
  /** Of the anchor. */
  readonly phase: Phase;
  readonly anchor: TracedToken;
  readonly drafted: readonly (TracedToken & {
    /** The drafter's own; null where it gives none. */
    readonly confidence: number | null;
    /** Null for tokens that were not compared. */
    readonly targetProbability: number | null;
    readonly outcome: 'accepted' | 'rejected' | 'discarded';
  })[];
  /** What the target chose and was emitted. */
  readonly emitted: readonly (TracedToken & { readonly targetProbability: number | null })[];
  /** Tokens that the target preferred to the rejected one. */
  readonly rejectedRank: number | null;
  readonly end: ReturnType<typeof endOf>;
  /** Why the draft was short or missing. */
  readonly shortBy: string | null;
}

/** @param target folder, for its tokenizer */
export async function* traceLines(target: string, answers: readonly ServedAnswer[]): AsyncGenerator<string> {
  const tokenizer = await loadTokenizer(target);
  for (const answer of answers) {
    const phases = phasesOf(tokenizer, [...answer.promptTokens, ...answer.tokens]);
    for (const [i, round] of answer.rounds.entries()) yield JSON.stringify(traceLine(tokenizer, answer, round, i, phases));
  }
}

function traceLine(
  tokenizer: Tokenizer,
  answer: ServedAnswer,
  round: MeasuredRound,
  index: number,
  phases: readonly Phase[],
): TraceLine {
  const traced = (token: TokenId): TracedToken => ({ token, text: tokenizer.decode([token], { skipSpecialTokens: false }) });
  const place = round.position - answer.promptTokens.length;
  const { draft, confidences, draftProbabilities, emittedProbabilities, accepted, evaluated } = round;
  return {
    id: answer.id,
    category: answer.category,
    temperature: answer.temperature,
    round: index,
    position: round.position,
    phase: phases[round.position] as Phase,
    anchor: traced(answer.tokens[place] as TokenId),
    drafted: draft.map((token, slot) => ({
      ...traced(token),
      confidence: confidences?.[slot] ?? null,
      targetProbability: draftProbabilities[slot] ?? null,
      outcome: slot < accepted ? 'accepted' : slot < evaluated ? 'rejected' : 'discarded',
    })),
    emitted: answer.tokens.slice(place + 1, place + 1 + round.emitted).map((token, i) => ({
      ...traced(token),
      targetProbability: emittedProbabilities[i] ?? null,
    })),
    rejectedRank: round.rejectedRank,
    end: endOf(round),
    shortBy: round.shortBy,
  };
}
