/** PORT: rules on what may be emitted, which change the target's logits before a token is chosen. */
import type { TokenId } from '../core/token.ts';

/**
 * Serves one sequence and follows its tokens. A row of a verified block sees the tokens before it, because a token is
 * pushed before the next one is chosen; nothing is ever taken back. So a draft changes no choice.
 */
export interface LogitsProcessor extends Disposable {
  /**
   * How many tokens of a draft the rules allow at its beginning; the others could never be chosen, and are not verified.
   * Without it all are. Changes nothing.
   */
  admit?(draft: readonly TokenId[]): number | Promise<number>;
  /**
   * Called once before each step that chooses tokens, while the target computes, with the draft tokens that it verifies.
   * What takes time, such as the masks of a grammar, belongs here.
   */
  prepare?(draft: readonly TokenId[]): Promise<void>;
  /**
   * Changes the row that the next token is chosen from, in place; -Infinity forbids a token, and one must remain.
   * @param logits [vocab] a copy that nobody else sees
   */
  process(logits: Float32Array): void;
  /** Takes an emitted token. */
  push(token: TokenId): void;
  /** True when the answer is complete with the token taken last, whatever the stop rule says. Default: never. */
  readonly ended?: boolean;
}
