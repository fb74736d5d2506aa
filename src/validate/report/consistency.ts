/** Served acceptance next to what teacher forcing predicts: serving that differs feeds the drafter something else. */
import type { ForcedAnswer, ServedAnswer } from '../measure/answer-records.ts';
import { forcedRun, walk } from './forced-walk.ts';
import { Bootstrap } from './interval.ts';
import type { Consistency, Lossless } from './report-schema.ts';
import { countedAnswer } from './served-acceptance.ts';

export interface AnswerPair {
  readonly served: ServedAnswer;
  readonly forced: ForcedAnswer;
}

/** Answers of both passes to the same request, in the order of `served`. */
export function pairAnswers(served: readonly ServedAnswer[], forced: readonly ForcedAnswer[]): readonly AnswerPair[] {
  const key = ({ id, temperature }: ServedAnswer | ForcedAnswer) => `${temperature} ${id}`;
  const byKey = new Map(forced.map((answer) => [key(answer), answer]));
  return served.flatMap((answer) => {
    const partner = byKey.get(key(answer));
    return partner === undefined ? [] : [{ served: answer, forced: partner }];
  });
}

/** Compares the ids of decoding with and without verified drafts. */
export function lossless(pairs: readonly AnswerPair[]): Lossless {
  const differing = pairs.flatMap(({ served, forced }) => {
    const longest = Math.max(served.tokens.length, forced.tokens.length);
    const position = Array.from({ length: longest }, (_, i) => i).find((i) => served.tokens[i] !== forced.tokens[i]);
    return position === undefined ? [] : [{ id: served.id, temperature: served.temperature, position }];
  });
  return { compared: pairs.length, differing };
}

export function consistency(pairs: readonly AnswerPair[], drafter: string, draftTokens: number, seed: number): Consistency {
  const bootstrap = new Bootstrap(pairs.length, seed);
  const rounds = pairs.map(({ served, forced }) => ({
    served: countedAnswer(served).rounds,
    walked: walk(forcedRun(forced, drafter), draftTokens),
  }));
  const lengths = (which: 'served' | 'walked') =>
    rounds.map((entry) => ({
      dividend: entry[which].reduce((sum, { emitted }) => sum + emitted, 0),
      divisor: entry[which].length,
    }));
  const places = Array.from({ length: draftTokens }, (_, place) => place);
  const bySlot = (
    count: (entry: (typeof rounds)[number]) => readonly { readonly accepted: number; readonly inside: number }[],
  ) =>
    places.map((place) =>
      bootstrap.ratio(
        rounds.map((entry) => {
          const inside = count(entry).filter((round) => round.inside > place);
          return { dividend: inside.filter(({ accepted }) => accepted > place).length, divisor: inside.length };
        }),
      ),
    );
  return {
    forcedLength: bootstrap.ratio(lengths('walked')),
    servedLength: bootstrap.ratio(lengths('served')),
    gap: bootstrap.difference(lengths('served'), lengths('walked')),
    forcedBySlot: bySlot(({ walked }) => walked),
    servedBySlot: bySlot(({ served }) => served.map(({ accepted, slotsInside }) => ({ accepted, inside: slotsInside }))),
    sameDrafts: sameDrafts(pairs, drafter),
  };
}

function sameDrafts(pairs: readonly AnswerPair[], drafter: string): number | null {
  let same = 0;
  let compared = 0;
  for (const { served, forced } of pairs) {
    for (const { position, draft } of served.rounds) {
      const anchor = forced.anchors[drafter]?.[position - served.promptTokens.length];
      // A draft cut short by the answer's limit is filled as a shorter block, which may come out differently.
      if (anchor === undefined || draft.length === 0 || anchor.draft.length !== draft.length) continue;
      compared++;
      if (anchor.draft.join() === draft.join()) same++;
    }
  }
  return compared === 0 ? null : same / compared;
}
