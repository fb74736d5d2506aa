/** Prefixes behind which a drafter failed, with what the target would have wanted: for training on them again. */
import type { ForcedAnswer, MeasuredAnswer, ServedAnswer } from '../measure/answer-records.ts';
import { endOf } from '../report/served-splits.ts';

export interface HardExample {
  readonly id: string;
  readonly category: string;
  readonly temperature: number;
  readonly prompt_length: number;
  /** The prefix; its last token is the anchor of the block. */
  readonly input_ids: readonly number[];
  /** What was drafted behind it, and how much of that was accepted. */
  readonly draft: readonly number[];
  readonly accepted: number;
  /** The target's own tokens for the slots of the block, as far as the answer goes. */
  readonly labels: readonly number[];
  /** [labels][k] the target's most likely tokens there, and their probabilities. */
  readonly top_tokens: readonly (readonly number[])[];
  readonly top_probabilities: readonly (readonly number[])[];
}

export interface HardExampleOptions {
  /** Draft tokens accepted at most. */
  readonly maxAccepted: number;
  /** Where the target itself is less sure of the token that was missed, there is little to learn. */
  readonly minTargetProbability: number;
  /** Of all; null: as many as there are. */
  readonly limit: number | null;
}

/** @returns the ones where the target was surest first */
export function hardExamples(answers: readonly MeasuredAnswer[], options: HardExampleOptions): readonly HardExample[] {
  const key = ({ id, temperature }: MeasuredAnswer) => `${temperature} ${id}`;
  const forced = new Map<string, ForcedAnswer>();
  for (const answer of answers) if (answer.pass === 'forced') forced.set(key(answer), answer);
  const found: { readonly example: HardExample; readonly certainty: number }[] = [];
  for (const answer of answers) {
    const plain = forced.get(key(answer));
    if (answer.pass !== 'served' || plain === undefined) continue;
    for (const round of answer.rounds) {
      const certainty = round.emittedProbabilities[round.accepted] ?? 0;
      if (endOf(round) !== 'rejected' || round.accepted > options.maxAccepted || certainty < options.minTargetProbability)
        continue;
      found.push({ certainty, example: toExample(answer, plain, round) });
    }
  }
  found.sort((a, b) => b.certainty - a.certainty);
  return found.slice(0, options.limit ?? found.length).map(({ example }) => example);
}

function toExample(answer: ServedAnswer, plain: ForcedAnswer, round: ServedAnswer['rounds'][number]): HardExample {
  const anchor = round.position - answer.promptTokens.length;
  const slots = [anchor + 1, Math.min(anchor + 1 + round.draft.length, plain.tokens.length)] as const;
  return {
    id: answer.id,
    category: answer.category,
    temperature: answer.temperature,
    prompt_length: answer.promptTokens.length,
    input_ids: [...answer.promptTokens, ...answer.tokens.slice(0, anchor + 1)],
    draft: round.draft,
    accepted: round.accepted,
    labels: plain.tokens.slice(...slots),
    top_tokens: plain.topTokens.slice(...slots),
    top_probabilities: plain.topProbabilities.slice(...slots),
  };
}
