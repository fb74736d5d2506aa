/** Served answers by what may make acceptance differ. */
import type { MeasuredRound, ServedAnswer } from '../measure/answer-records.ts';
import type { Report } from './report-schema.ts';
import { countedAnswer, servedAcceptance } from './served-acceptance.ts';

const FIRST_BUCKET = 128;

/** Answers by a key of theirs, in order of appearance. */
export function groupBy<Item>(items: readonly Item[], key: (item: Item) => string): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** Positions of anchors in buckets of doubling width: 0 to 127, 128 to 255, 256 to 511, … */
export function byContextLength(
  answers: readonly ServedAnswer[],
  maxDraftTokens: number,
  seed: number,
): Report['byContextLength'] {
  const buckets: Report['byContextLength'] = [];
  const longest = Math.max(0, ...answers.map(({ promptTokens, tokens }) => promptTokens.length + tokens.length));
  for (let from = 0, to = FIRST_BUCKET; from < longest; from = to, to *= 2) {
    const inside = ({ position }: MeasuredRound) => position >= from && position < to;
    const members = answers.filter(({ rounds }) => rounds.some(inside)).map((answer) => countedAnswer(answer, inside));
    if (members.length > 0) {
      buckets.push({ from, to: to - 1, acceptance: servedAcceptance(members, maxDraftTokens, seed) });
    }
  }
  return buckets;
}

/** How rounds ended. */
export function endings(answers: readonly ServedAnswer[]): Report['endings'] {
  const counts = { rejected: 0, whole: 0, answerEnded: 0, noDraft: 0 };
  const shortBy: Record<string, number> = {};
  for (const { rounds } of answers) {
    for (const round of rounds) {
      counts[endOf(round)] += 1;
      if (round.shortBy !== null) shortBy[round.shortBy] = (shortBy[round.shortBy] ?? 0) + 1;
    }
  }
  return { ...counts, shortBy };
}

export function endOf({
  draft,
  evaluated,
  accepted,
  emitted,
}: MeasuredRound): 'rejected' | 'whole' | 'answerEnded' | 'noDraft' {
  if (draft.length === 0) return 'noDraft';
  if (evaluated > accepted) return 'rejected';
  return accepted === draft.length && emitted > accepted ? 'whole' : 'answerEnded';
}
