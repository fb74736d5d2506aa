/** Turns emitted tokens into text, and sees where the answer ends. */
import type { TokenId } from '../core/token.ts';
import type { Ending, StopRule } from '../decode/stop-rule.ts';
import { createDetokenizer, type IncrementalDetokenizer } from '../text/incremental-detokenizer.ts';
import { StopStringMatcher } from '../text/stop-strings.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import type { GenerateRequest } from './engine.ts';

/** The stop rule of one request. Text that could become part of a stop string is held back until that is decided. */
export class AnswerText implements StopRule {
  readonly #endTokens: ReadonlySet<TokenId>;
  readonly #stopTokens: ReadonlySet<TokenId>;
  readonly #includeStop: boolean;
  readonly #detokenizer: IncrementalDetokenizer;
  readonly #matcher: StopStringMatcher;
  /** Tokens to come whose text is not searched for stop strings. */
  #unsearched: number;
  #text = '';

  constructor(request: GenerateRequest, tokenizer: Tokenizer, endTokens: readonly TokenId[]) {
    this.#endTokens = new Set(request.ignoreEos ? [] : endTokens);
    this.#stopTokens = new Set(request.stopTokenIds);
    this.#includeStop = request.includeStopString;
    this.#unsearched = request.rules?.minTokens ?? 0;
    this.#detokenizer = createDetokenizer(tokenizer, {
      skipSpecialTokens: request.skipSpecialTokens,
      shownTokens: request.shownTokens ?? [],
      precedingTokens: request.promptTokens,
    });
    this.#matcher = new StopStringMatcher(request.stopStrings, { includeStopString: request.includeStopString });
  }

  push(token: TokenId): Ending | null {
    const isEnd = this.#endTokens.has(token);
    if (isEnd || this.#stopTokens.has(token)) {
      if (this.#includeStop) this.#match(this.#detokenizer.push(token));
      return { reason: 'stop', stopReason: isEnd ? null : token };
    }
    const ending = this.#match(this.#detokenizer.push(token));
    this.#unsearched--;
    return ending;
  }

  /** Text that became certain since the last call. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  /** The last text, once the answer has ended: what was held back, unless a stop string cut it off. */
  finish(): string {
    this.#match(this.#detokenizer.flush());
    this.#text += this.#matcher.flush();
    return this.take();
  }

  #match(piece: string): Ending | null {
    if (piece === '') return null;
    if (this.#unsearched > 0) {
      this.#text += this.#matcher.pass(piece);
      return null;
    }
    const { text, match } = this.#matcher.push(piece);
    this.#text += text;
    return match === null ? null : { reason: 'stop', stopReason: match.stopString };
  }
}
