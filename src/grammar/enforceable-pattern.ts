/** Regular expressions, in ECMAScript's words, as the grammar engine can enforce them. */
import { CharacterSet, spellCharacter } from './character-set.ts';

export interface PatternPlace {
  /**
   * The pattern stands between the quotes of a JSON string, where the engine puts it as it is: it becomes the same one without
   * texts that JSON would have to write with a backslash.
   */
  readonly quoted: boolean;
  /** Most characters of the pattern as it is written. */
  readonly maxLength: number;
  /** Makes the error for something that cannot be enforced. */
  readonly refuse: (what: string) => Error;
}

const ESCAPED_IN_JSON = 'characters that JSON escapes';

/**
 * The pattern with all sets of characters written so that they mean what they say, see {@link CharacterSet}. What the engine would
 * take for something else is refused; what it refuses by itself stays.
 * @throws what `refuse` makes
 */
export function enforceablePattern(pattern: string, { quoted, maxLength, refuse }: PatternPlace): string {
  const reader = new PatternReader(pattern, refuse);
  const anchors = new Anchors(refuse);
  const write = (set: CharacterSet) => {
    if (quoted) set.removeEscaped();
    if (set.isEmpty) throw refuse(quoted ? ESCAPED_IN_JSON : 'a set without characters');
    return set.toPattern();
  };
  const literal = (code: number) => {
    if (quoted && isEscaped(code)) throw refuse(ESCAPED_IN_JSON);
    return spellCharacter(code);
  };
  const dot = write(CharacterSet.ofClass('.')!);
  let written = '';
  while (reader.more) {
    if (written.length > maxLength) throw refuse(`one of more than ${maxLength} characters with its sets written out`);
    const character = reader.next();
    if (character === '^') anchors.start();
    else if (character === '$') anchors.end();
    else if (character === '(') {
      const opening = `(${reader.groupPrefix()}`;
      anchors.open();
      written += opening;
      continue;
    } else if (character === ')') anchors.close(reader.repeats);
    else if (character === '|') anchors.alternative();
    else if ('*+?'.includes(character)) {
      written += character;
      continue;
    } else if (character === '{') {
      written += `{${reader.upTo('}')}`;
      continue;
    } else {
      anchors.atom();
      if (character === '[') written += write(reader.set(quoted));
      else if (character === '.') written += dot;
      else if (character === '\\') {
        const escaped = reader.escape();
        if (typeof escaped === 'string') written += escaped;
        else written += typeof escaped === 'number' ? literal(escaped) : write(escaped);
      } else if (quoted && isEscaped(character.codePointAt(0)!)) throw refuse(ESCAPED_IN_JSON);
      else written += character;
      continue;
    }
    written += character;
  }
  return written;
}

function isEscaped(code: number): boolean {
  return code < 0x20 || code === 0x22 || code === 0x5c;
}

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' };

class PatternReader {
  readonly #characters: readonly string[];
  readonly #refuse: (what: string) => Error;
  #at = 0;

  constructor(pattern: string, refuse: (what: string) => Error) {
    this.#characters = [...pattern];
    this.#refuse = refuse;
  }

  get more(): boolean {
    return this.#at < this.#characters.length;
  }

  /** Whether what comes next may repeat what was before. */
  get repeats(): boolean {
    return this.more && '*+{'.includes(this.#characters[this.#at]!);
  }

  next(): string {
    const character = this.#characters[this.#at++];
    if (character === undefined) throw this.#refuse('a pattern that ends too early');
    if (/^\p{Surrogate}$/u.test(character)) throw this.#refuse('half a surrogate pair');
    return character;
  }

  /** The rest of a text that the end closes, the end included. */
  upTo(end: string): string {
    const from = this.#at;
    while (this.next() !== end);
    return this.#characters.slice(from, this.#at).join('');
  }

  /** What follows the bracket of a group that is no mere group, as `?:`. */
  groupPrefix(): string {
    if (this.#characters[this.#at] !== '?') return '';
    const kind = this.#characters.slice(this.#at + 1, this.#at + 3).join('');
    if (/^<[^=!]/.test(kind)) return this.upTo('>');
    const length = kind.startsWith(':') ? 2 : kind.startsWith('<') ? 3 : 2;
    const prefix = this.#characters.slice(this.#at, this.#at + length).join('');
    this.#at += length;
    return prefix;
  }

  /** What a backslash and the characters behind it stand for; text for what the engine reads, or refuses, by itself. */
  escape(): CharacterSet | number | string {
    const letter = this.next();
    if (letter === '.') return 0x2e;
    const set = CharacterSet.ofClass(letter);
    if (set !== null) return set;
    if (Object.hasOwn(CONTROLS, letter)) return CONTROLS[letter]!.charCodeAt(0);
    if ('xuc'.includes(letter)) return this.#coded(letter);
    if (/[1-9bBkpP]/.test(letter)) return `\\${letter}`;
    if (/[a-zA-Z]/.test(letter)) throw this.#refuse(`\\${letter}`);
    return letter.codePointAt(0)!;
  }

  /** A set behind its opening bracket. */
  set(quoted: boolean): CharacterSet {
    const set = new CharacterSet();
    const negated = this.#characters[this.#at] === '^';
    if (negated) this.#at++;
    for (let character = this.next(); character !== ']'; character = this.next()) {
      const member = character === '\\' ? this.#escapedMember() : character.codePointAt(0)!;
      if (typeof member === 'object') {
        set.addAll(member);
        continue;
      }
      const isRange = this.#characters[this.#at] === '-' && (this.#characters[this.#at + 1] ?? ']') !== ']';
      let last: CharacterSet | number = member;
      if (isRange) {
        this.#at++;
        const end = this.next();
        last = end === '\\' ? this.#escapedMember() : end.codePointAt(0)!;
      }
      if (typeof last === 'object') throw this.#refuse('a range that ends with a class of characters');
      if (last < member) throw this.#refuse('a range whose end is before its beginning');
      if (!set.add(member, last)) throw this.#refuse('a set of too many characters beyond ASCII');
    }
    if (quoted && !negated && [...Array(0x5d).keys()].some((code) => isEscaped(code) && set.has(code) && !set.has(0x80)))
      throw this.#refuse(ESCAPED_IN_JSON);
    if (negated && !set.invert()) throw this.#refuse('a set of all characters but some beyond ASCII');
    return set;
  }

  #escapedMember(): CharacterSet | number {
    if (this.#characters[this.#at] === 'b') {
      this.#at++;
      return 0x08;
    }
    const escaped = this.escape();
    if (typeof escaped === 'string') throw this.#refuse(`${escaped} in a set`);
    return escaped;
  }

  /** `\xHH`, `\uHHHH`, `\u{H…}`, `\cX`. */
  #coded(letter: string): number {
    const rest = this.#characters.slice(this.#at, this.#at + 8).join('');
    const form = { x: /^([\da-f]{2})/i, u: /^([\da-f]{4})|^\{([\da-f]{1,6})\}/i, c: /^([a-z])/i }[letter]!;
    const [all, fixed, braced] = form.exec(rest) ?? [];
    if (all === undefined) throw this.#refuse(`\\${letter} without its digits`);
    this.#at += all.length;
    if (letter === 'c') return all.charCodeAt(0) % 32;
    const code = Number.parseInt(fixed ?? braced!, 16);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw this.#refuse(`\\${letter}${all}, which is no character,`);
    return code;
  }
}

/** The engine passes over `^` and `$`, which is right only where nothing can be before and behind them. */
class Anchors {
  readonly #refuse: (what: string) => Error;
  readonly #outer: { start: boolean; ended: boolean; used: boolean }[] = [];
  /** Whether the group, and the place, is where the text begins. */
  #start = true;
  #here = true;
  /** Whether a `$` was just before, and in an alternative of this group. */
  #ended = false;
  #groupEnded = false;
  #used = false;

  constructor(refuse: (what: string) => Error) {
    this.#refuse = refuse;
  }

  atom(): void {
    if (this.#ended) throw this.#refuse('a $ in front of other text');
    this.#here = false;
  }

  start(): void {
    if (!this.#here) throw this.#refuse('a ^ behind other text');
    this.#used = true;
  }

  end(): void {
    this.#ended = true;
    this.#used = true;
  }

  open(): void {
    if (this.#ended) throw this.#refuse('a $ in front of other text');
    this.#outer.push({ start: this.#start, ended: this.#groupEnded, used: this.#used });
    this.#start = this.#here;
    this.#groupEnded = false;
    this.#used = false;
  }

  alternative(): void {
    this.#groupEnded ||= this.#ended;
    this.#ended = false;
    this.#here = this.#start;
  }

  /** @param repeats whether the group is repeated */
  close(repeats: boolean): void {
    const outer = this.#outer.pop();
    if (outer === undefined) return;
    if (this.#used && repeats) throw this.#refuse('a repeated group with ^ or $');
    this.#ended ||= this.#groupEnded;
    this.#groupEnded = outer.ended;
    this.#used ||= outer.used;
    this.#start = outer.start;
    this.#here = false;
  }
}
