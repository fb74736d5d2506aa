/** `more`: so far it fits; `done`: this character completed it; `refused`: this character does not fit. */
export type MatchState = 'more' | 'done' | 'refused';

/** Matches literals in a row, with JSON's blanks ahead of each, character by character. */
export class SpacedLiterals {
  readonly #literals: readonly string[];
  #literal = 0;
  #at = 0;

  constructor(literals: readonly string[]) {
    this.#literals = literals;
  }

  step(character: string): MatchState {
    const literal = this.#literals[this.#literal]!;
    if (this.#at === 0 && isBlank(character)) return 'more';
    if (character !== literal[this.#at]) return 'refused';
    this.#at += 1;
    if (this.#at < literal.length) return 'more';
    this.#literal += 1;
    this.#at = 0;
    return this.#literal < this.#literals.length ? 'more' : 'done';
  }
}

/** What JSON allows between its parts. */
export function isBlank(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\t' || character === '\r';
}
