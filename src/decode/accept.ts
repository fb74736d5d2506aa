import type { TokenId } from '../core/token.ts';

/** What came of one draft. */
export interface Acceptance {
  /** Draft tokens compared with the target's choice. */
  readonly evaluated: number;
  /** Draft tokens that equalled it, and were emitted. */
  readonly accepted: number;
  /** Tokens emitted: the accepted ones and, unless the answer ended with one of them, the target's own next choice. */
  readonly emitted: number;
}

/**
 * The accept rule: the target chooses every token, and a draft token is accepted while it is that choice.
 *
 * What is emitted is therefore what plain decoding emits, whatever the draft. For sampled requests `choose` makes the
 * plain sampler's own draw for that position, so the text is the same too, not only its distribution; the probability
 * that a draft token is accepted is the probability that the target gives it. (Leviathan, Kalman and Matias 2023,
 * section 2, for a proposal that is certain of its tokens.)
 *
 * @param draft may be empty: then this is a step of plain decoding
 * @param choose the target's choice behind the first `index` draft tokens; asked for in order, and only while they hold
 * @param emit takes a token; true when the answer ends with it
 */
export function accept(
  draft: readonly TokenId[],
  choose: (index: number) => TokenId,
  emit: (token: TokenId) => boolean,
): Acceptance {
  let accepted = 0;
  for (;;) {
    const token = choose(accepted);
    const evaluated = Math.min(accepted + 1, draft.length);
    const matches = accepted < draft.length && draft[accepted] === token;
    if (matches) accepted++;
    const ended = emit(token);
    if (ended || !matches) return { evaluated, accepted, emitted: accepted + (matches ? 0 : 1) };
  }
}
