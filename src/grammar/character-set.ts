/**
 * A set of characters in words that the grammar engine takes for what they are. It reads a set as one of bytes: characters beyond
 * ASCII are cut to a byte, and a negated set allows all of them, whichever it names.
 */
const ASCII = 0x80;

/** Characters beyond ASCII that a set is written out for. */
const MAX_LISTED = 512;

export class CharacterSet {
  readonly #ascii = new Array<boolean>(ASCII).fill(false);
  readonly #others = new Set<number>();
  /** Whether all characters beyond ASCII are in the set. */
  #allOthers = false;

  /** The set of `\d`, `\s`, `\w`, of their opposites `\D`, `\S`, `\W`, or of `.`; null for other letters. */
  static ofClass(letter: string): CharacterSet | null {
    const ranges = CLASSES[letter.toLowerCase()];
    if (ranges === undefined) return null;
    const set = new CharacterSet();
    for (const [first, last] of ranges) set.add(first.charCodeAt(0), last.charCodeAt(0));
    if (letter !== letter.toLowerCase() || letter === '.') set.invert();
    return set;
  }

  get isEmpty(): boolean {
    return !this.#allOthers && this.#others.size === 0 && !this.#ascii.includes(true);
  }

  has(code: number): boolean {
    return code < ASCII ? this.#ascii[code]! : this.#allOthers || this.#others.has(code);
  }

  /** @returns false when there are too many of them to be written out */
  add(first: number, last: number): boolean {
    this.#ascii.fill(true, Math.min(first, ASCII), Math.min(last + 1, ASCII));
    const from = Math.max(first, ASCII);
    if (last - from >= MAX_LISTED) return false;
    for (let code = from; code <= last; code++) this.#others.add(code);
    return this.#others.size <= MAX_LISTED;
  }

  addAll(other: CharacterSet): void {
    for (const [code, isIn] of other.#ascii.entries()) if (isIn) this.#ascii[code] = true;
    this.#allOthers ||= other.#allOthers;
  }

  /** @returns false when that would be all characters but some beyond ASCII, which nothing can say */
  invert(): boolean {
    if (!this.#allOthers && this.#others.size > 0) return false;
    for (const [code, isIn] of this.#ascii.entries()) this.#ascii[code] = !isIn;
    this.#allOthers = !this.#allOthers;
    return true;
  }

  /** Takes out what JSON writes with a backslash. */
  removeEscaped(): void {
    this.#ascii.fill(false, 0, 0x20);
    for (const character of '"\\') this.#ascii[character.charCodeAt(0)] = false;
  }

  /** As part of a regular expression; the set must not be empty. */
  toPattern(): string {
    const inside = ranges(this.#ascii);
    const outside = ranges(this.#ascii.map((isIn) => !isIn));
    if (this.#allOthers) return outside === '' ? `(?:[${inside}]|[^${inside}])` : `[^${outside}]`;
    if (this.#others.size === 0) return `[${inside}]`;
    const listed = [...this.#others].map((code) => String.fromCodePoint(code));
    return `(?:${[...(inside === '' ? [] : [`[${inside}]`]), ...listed].join('|')})`;
  }
}

/** `.` is told by what it leaves out. */
const CLASSES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  d: [['0', '9']],
  s: [
    ['\t', '\r'],
    [' ', ' '],
  ],
  w: [
    ['0', '9'],
    ['A', 'Z'],
    ['_', '_'],
    ['a', 'z'],
  ],
  '.': [
    ['\n', '\n'],
    ['\r', '\r'],
  ],
};

function ranges(members: readonly boolean[]): string {
  let text = '';
  for (let first = members.indexOf(true); first !== -1; ) {
    const end = members.indexOf(false, first);
    const last = (end === -1 ? members.length : end) - 1;
    text += first === last ? spellCharacter(first) : `${spellCharacter(first)}-${spellCharacter(last)}`;
    first = members.indexOf(true, last + 1);
  }
  return text;
}

/** A character beyond doubt; the engine reads digits behind `\xHH` as more of it. */
export function spellCharacter(code: number): string {
  const character = String.fromCodePoint(code);
  return code >= ASCII || /[a-zA-Z0-9]/.test(character) ? character : `\\u{${code.toString(16)}}`;
}
