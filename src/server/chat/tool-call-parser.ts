/** Finds tool calls in an answer as it comes: Hermes' and Qwen's `<tool_call>{"name": …, "arguments": …}</tool_call>`. */
import { heldLength } from './held-tag.ts';
import { JsonObjectScanner } from './json-object-scanner.ts';
import { isBlank, SpacedLiterals } from './spaced-literals.ts';

export type AnswerPiece =
  | { readonly kind: 'content'; readonly text: string }
  /** A call begins; `arguments` pieces of the same index follow. */
  | { readonly kind: 'call'; readonly index: number; readonly name: string }
  | { readonly kind: 'arguments'; readonly index: number; readonly text: string };

export const OPEN_CALL = '<tool_call>';
export const CLOSE_CALL = '</tool_call>';

/** What models write: the name first. The arguments can then be passed on as they come. */
const HEADER =
  /^[ \t\n\r]*\{[ \t\n\r]*"name"[ \t\n\r]*:[ \t\n\r]*("(?:[^"\\]|\\.)+")[ \t\n\r]*,[ \t\n\r]*"arguments"[ \t\n\r]*:[ \t\n\r]*(?=\{)/;
/** A block that does not begin with a header within as many characters is looked at when it is complete. */
const MAX_HEADER = 512;

/**
 * What the pieces say depends on the text alone, not on the parts it came in. All text is in them but the tags and braces of
 * calls, and blanks around calls. A block that is no call is content, tags included. A call whose arguments have begun stays
 * one: they are what the model wrote, JSON or not.
 */
export class ToolCallParser {
  readonly #maxCalls: number;
  #state: 'content' | 'block' | 'arguments' | 'tail' = 'content';
  /** Text that is not decided: what may become a tag, a block since its opening tag, what follows arguments. */
  #held = '';
  /** How much of it has been looked at. */
  #scanned = 0;
  /** Blanks since the last call, or since the beginning, while nothing else has come. */
  #blanks = '';
  #hasText = false;
  #calls = 0;
  #scanner = new JsonObjectScanner();
  #tail = new SpacedLiterals([CLOSE_CALL]);
  /** The object of a block as far as it has come, as JSON; whole once `#isWhole`. */
  #object = '';
  #isWhole = false;
  #pieces: AnswerPiece[] = [];

  /** @param options.maxCalls further ones are content. Default: any number */
  constructor({ maxCalls = Number.POSITIVE_INFINITY }: { readonly maxCalls?: number } = {}) {
    this.#maxCalls = maxCalls;
  }

  /** Calls so far. */
  get calls(): number {
    return this.#calls;
  }

  /** Whether the arguments of a call have begun and are not whole. */
  get isCallOpen(): boolean {
    return this.#state === 'arguments';
  }

  /** Takes in the next text of the answer. */
  push(text: string): readonly AnswerPiece[] {
    this.#held += text;
    while (this.#advance());
    return this.#take();
  }

  /** Tells what the end of the answer decides. */
  finish(): readonly AnswerPiece[] {
    if (this.#state === 'content') this.#say(this.#held);
    if (this.#state === 'block') this.#say(OPEN_CALL + this.#held);
    this.#held = '';
    // An answer of nothing but blanks; beside calls they are layout.
    if (this.#calls === 0 && this.#blanks !== '') this.#pieces.push({ kind: 'content', text: this.#blanks });
    return this.#take();
  }

  #take(): readonly AnswerPiece[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  /** Decides as much as it can in the present state; true when another state goes on. */
  #advance(): boolean {
    if (this.#state === 'content') return this.#readContent();
    if (this.#state === 'arguments') return this.#readArguments();
    return this.#state === 'block' ? this.#readBlock() : this.#readTail();
  }

  #readContent(): boolean {
    const mayCall = this.#calls < this.#maxCalls;
    const at = mayCall ? this.#held.indexOf(OPEN_CALL) : -1;
    const end = at === -1 ? this.#held.length - (mayCall ? heldLength(this.#held, OPEN_CALL) : 0) : at;
    this.#say(this.#held.slice(0, end));
    if (at === -1) {
      this.#held = this.#held.slice(end);
      return false;
    }
    this.#object = '';
    this.#isWhole = false;
    return this.#enter('block', at + OPEN_CALL.length, [CLOSE_CALL]);
  }

  #readBlock(): boolean {
    const header = this.#scanned <= MAX_HEADER ? HEADER.exec(this.#held.slice(0, MAX_HEADER)) : null;
    const name = header === null ? null : parseJson(header[1]!);
    if (header !== null && typeof name === 'string') {
      this.#begin(name);
      return this.#enter('arguments', header[0].length);
    }
    for (; this.#scanned < this.#held.length; this.#scanned += 1) {
      const step = this.#stepBlock(this.#held[this.#scanned]!);
      if (step === 'more') continue;
      const call = step === 'done' ? toCall(parseJson(this.#object)) : null;
      const end = step === 'done' ? this.#scanned + 1 : this.#scanned;
      if (call === null) {
        this.#say(OPEN_CALL + this.#held.slice(0, end));
      } else {
        this.#begin(call.name);
        this.#passArguments(JSON.stringify(call.arguments));
      }
      return this.#enter('content', end);
    }
    return false;
  }

  #stepBlock(character: string): 'more' | 'done' | 'refused' {
    if (this.#isWhole) return this.#tail.step(character);
    if (this.#object === '' && isBlank(character)) return 'more';
    const spelling = this.#scanner.spelling(character);
    const state = this.#scanner.step(character);
    if (state === 'invalid') return 'refused';
    this.#object += spelling;
    this.#isWhole = state === 'closed';
    return 'more';
  }

  #readArguments(): boolean {
    let text = '';
    for (; this.#scanned < this.#held.length; this.#scanned += 1) {
      const character = this.#held[this.#scanned]!;
      const spelling = this.#scanner.spelling(character);
      const state = this.#scanner.step(character);
      if (state !== 'invalid') text += spelling;
      if (state === 'open') continue;
      this.#passArguments(text);
      return state === 'closed'
        ? this.#enter('tail', this.#scanned + 1, ['}', CLOSE_CALL])
        : this.#enter('content', this.#scanned);
    }
    this.#passArguments(text);
    this.#held = '';
    this.#scanned = 0;
    return false;
  }

  /** What follows the arguments: the end of the block, else text like any other. */
  #readTail(): boolean {
    for (; this.#scanned < this.#held.length; this.#scanned += 1) {
      const step = this.#tail.step(this.#held[this.#scanned]!);
      if (step !== 'more') return this.#enter('content', step === 'done' ? this.#scanned + 1 : 0);
    }
    return false;
  }

  /** @param skipped characters of the held text that the next state does not see */
  #enter(state: 'content' | 'block' | 'arguments' | 'tail', skipped: number, tail: readonly string[] = []): true {
    this.#state = state;
    this.#held = this.#held.slice(skipped);
    this.#scanned = 0;
    this.#scanner = new JsonObjectScanner();
    this.#tail = new SpacedLiterals(tail);
    return true;
  }

  #say(text: string): void {
    if (!this.#hasText) {
      this.#blanks += text;
      if (this.#blanks.trim() === '') return;
      this.#hasText = true;
      this.#pieces.push({ kind: 'content', text: this.#blanks });
      this.#blanks = '';
    } else if (text !== '') {
      this.#pieces.push({ kind: 'content', text });
    }
  }

  #begin(name: string): void {
    this.#pieces.push({ kind: 'call', index: this.#calls, name });
    this.#calls += 1;
    this.#hasText = false;
    this.#blanks = '';
  }

  #passArguments(text: string): void {
    if (text !== '') this.#pieces.push({ kind: 'arguments', index: this.#calls - 1, text });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A call without arguments is one of a function that takes none. */
function toCall(value: unknown): { readonly name: string; readonly arguments: object } | null {
  if (!isObject(value)) return null;
  const { name, arguments: given = {} } = value as { readonly name?: unknown; readonly arguments?: unknown };
  return typeof name === 'string' && name !== '' && isObject(given) ? { name, arguments: given } : null;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
