/** Parts an answer, as it comes, into what the model thinks and what it says. */
import type { TokenId } from '../../core/token.ts';
import { heldLength } from './held-tag.ts';

export const OPEN_REASONING = '<think>';
export const CLOSE_REASONING = '</think>';

/** What the prompt says of reasoning: it has opened it, it has closed or excluded it, or the answer may open it. */
export type ReasoningStart = 'open' | 'closed' | 'undecided';

/** Ids of the tags, where they are tokens of the vocabulary. */
export interface ReasoningTagTokens {
  readonly open: TokenId;
  readonly close: TokenId;
}

export interface SplitText {
  readonly reasoning: string;
  readonly content: string;
}

/**
 * What it says depends on the answer alone, not on the parts it came in. Joined, the parts are the answer without the tags and
 * without blanks ahead of the opening one. Where the tags are tokens, only the token ends the reasoning.
 */
export class ReasoningSplitter {
  readonly #tags: ReasoningTagTokens | null;
  #state: 'undecided' | 'reasoning' | 'content';
  /** Text that may be the beginning of a tag. */
  #held = '';
  #mayClose: boolean;
  #tokens = 0;

  /** @param tags null: tags are told by their text alone */
  constructor(start: ReasoningStart, tags: ReasoningTagTokens | null) {
    this.#tags = tags;
    this.#mayClose = tags === null;
    this.#state = start === 'open' ? 'reasoning' : start === 'closed' ? 'content' : 'undecided';
  }

  /** Tokens between the tags; where tags are no tokens, those of all rounds up to the closing one. */
  get reasoningTokens(): number {
    return this.#tokens;
  }

  /** Takes in the tokens of a round, and the text that became certain. */
  push(tokens: readonly TokenId[], text: string): SplitText {
    if (this.#state !== 'content') this.#count(tokens);
    this.#held += text;
    if (this.#state === 'undecided') this.#readOpening();
    if (this.#state === 'reasoning') return this.#readReasoning();
    return { reasoning: '', content: this.#state === 'content' ? this.#take(this.#held.length) : '' };
  }

  /** Tells what the end of the answer decides. */
  finish(): SplitText {
    const rest = this.#take(this.#held.length);
    return this.#state === 'reasoning' ? { reasoning: rest, content: '' } : { reasoning: '', content: rest };
  }

  #readOpening(): void {
    const text = this.#held.trimStart();
    if (text.startsWith(OPEN_REASONING)) {
      this.#state = 'reasoning';
      this.#held = text.slice(OPEN_REASONING.length);
    } else if (!OPEN_REASONING.startsWith(text)) {
      this.#state = 'content';
      this.#tokens = 0;
    }
  }

  #readReasoning(): SplitText {
    const at = this.#mayClose ? this.#held.indexOf(CLOSE_REASONING) : -1;
    if (at === -1) {
      const held = this.#mayClose ? heldLength(this.#held, CLOSE_REASONING) : 0;
      return { reasoning: this.#take(this.#held.length - held), content: '' };
    }
    const reasoning = this.#take(at);
    this.#take(CLOSE_REASONING.length);
    this.#state = 'content';
    return { reasoning, content: this.#take(this.#held.length) };
  }

  #take(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return text;
  }

  #count(tokens: readonly TokenId[]): void {
    for (const token of tokens) {
      if (token === this.#tags?.close) this.#mayClose = true;
      else if (token !== this.#tags?.open && !(this.#mayClose && this.#tags !== null)) this.#tokens += 1;
    }
  }
}
