/** Follows the text of one JSON object to where it ends. */

/** `open`: inside the object; `closed`: this character ended it; `invalid`: no JSON object goes on like this. */
export type ScanState = 'open' | 'closed' | 'invalid';

/** Sees brackets and strings only: what it lets through need not be JSON, what it calls invalid is none. */
export class JsonObjectScanner {
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  /** @param character the next UTF-16 unit; the first one has to be the opening brace */
  step(character: string): ScanState {
    if (this.#inString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === '\\') this.#isEscaped = true;
      else if (character === '"') this.#inString = false;
      return 'open';
    }
    if (character === '<' || (this.#depth === 0 && character !== '{')) return 'invalid';
    if (character === '"') this.#inString = true;
    if (character === '{' || character === '[') this.#depth += 1;
    if (character === '}' || character === ']') this.#depth -= 1;
    return this.#depth === 0 ? 'closed' : 'open';
  }

  /** The character as JSON has it where the scanner is: models write line breaks into strings as they are. */
  spelling(character: string): string {
    return this.#inString && character < ' ' ? JSON.stringify(character).slice(1, -1) : character;
  }
}
