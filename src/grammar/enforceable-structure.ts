/** What can be said against a structure before anything tries to compile it. */
import type { AnswerStructure } from '../core/token-rules.ts';
import { enforceablePattern } from './enforceable-pattern.ts';
import { enforceableSchema } from './enforceable-schema.ts';
import type { GrammarLimits } from './grammar-limits.ts';
import { refusal } from './refusal.ts';

const MAX_GROWTH = 4;

/**
 * The structure with schemas that the engine enforces, as {@link enforceableSchema} makes them.
 * @throws AppError `invalid_request` when it is larger than allowed, no JSON where it must be, or cannot be enforced
 */
export function enforceableStructure(structure: AnswerStructure, limits: GrammarLimits): AnswerStructure {
  switch (structure.kind) {
    case 'json-object':
      return structure;
    case 'json-schema': {
      checkText('the JSON schema', structure.schema, limits);
      const schema = parseJson('the JSON schema', structure.schema);
      return {
        kind: 'json-schema',
        schema: rewritten('the JSON schema', enforceableSchema(schema, limits.maxRepetition), limits),
      };
    }
    case 'structural-tag': {
      checkText('the structural tag', structure.tag, limits);
      const tag = enforceableTag(parseJson('the structural tag', structure.tag), limits);
      return { kind: 'structural-tag', tag: rewritten('the structural tag', tag, limits) };
    }
    case 'regex':
      if (structure.pattern === '') throw refusal('a regular expression', 'an empty one');
      checkText('the regular expression', structure.pattern, limits);
      return { kind: 'regex', pattern: rewrittenPattern(structure.pattern, limits) };
    case 'grammar':
      if (structure.ebnf.trim() === '') throw refusal('a grammar', 'an empty one');
      checkText('the grammar', structure.ebnf, limits);
      checkSets(structure.ebnf);
      return structure;
    case 'choice':
      checkChoices(structure.choices, limits);
      return structure;
  }
}

function checkText(what: string, text: string, limits: GrammarLimits): void {
  checkBytes(what, text, limits);
  const depth = deepest(text);
  if (depth > limits.maxDepth) throw refusal(`at most ${limits.maxDepth} levels of brackets in ${what}`, `${depth}`);
  // Bounded, so that no text takes long to look through; longer counts than this are left to the time limit.
  for (const [, inner] of text.matchAll(/\{([\d\s,]{1,40})\}/g)) {
    const most = Math.max(0, ...(inner ?? '').split(/\D+/).map(Number));
    if (most > limits.maxRepetition) throw refusal(`at most ${limits.maxRepetition} repetitions in ${what}`, `${most}`);
  }
}

/** Ranges of integers are listed, which takes more room than they came in. */
function rewritten(what: string, value: unknown, { maxBytes, ...limits }: GrammarLimits): string {
  const text = JSON.stringify(value);
  checkBytes(`${what} with its ranges listed`, text, { ...limits, maxBytes: maxBytes * MAX_GROWTH });
  return text;
}

function checkBytes(what: string, text: string, { maxBytes }: GrammarLimits): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) throw refusal(`at most ${maxBytes} bytes in ${what}`, `${bytes}`);
}

function checkChoices(choices: readonly string[], limits: GrammarLimits): void {
  if (choices.length === 0) throw refusal('at least one choice', 'none');
  if (choices.length > limits.maxChoices) throw refusal(`at most ${limits.maxChoices} choices`, `${choices.length}`);
  checkBytes('the choices', choices.join(''), limits);
}

/** Levels of brackets, those in strings included: too careful for texts that quote very many of them. */
function deepest(text: string): number {
  let depth = 0;
  let most = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '\\') at++;
    else if ('([{'.includes(character)) most = Math.max(most, ++depth);
    else if (')]}'.includes(character)) depth = Math.max(0, depth - 1);
  }
  return most;
}

function parseJson(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refusal(`JSON in ${what}`, `text that does not parse (${error instanceof Error ? error.message : error})`);
  }
}

/** Sets are written out, which may take more room than they came in. */
function rewrittenPattern(pattern: string, { maxBytes }: GrammarLimits): string {
  const refuse = (what: string) => refusal('a regular expression that can be enforced', what);
  return enforceablePattern(pattern, { quoted: false, maxLength: maxBytes * MAX_GROWTH, refuse });
}

/** A text, a comment, or a set. */
const GRAMMAR_PIECES = /"(?:\\.|[^"\\\n])*"|#[^\n]*|\[(?:\\.|[^\]\\\n])*\]/gu;
const CODED = /\\[xu]\{?([\da-f]+)/gi;

/** The engine reads sets byte by byte, see `CharacterSet`. */
function checkSets(ebnf: string): void {
  for (const [piece] of ebnf.matchAll(GRAMMAR_PIECES)) {
    const coded = [...piece.matchAll(CODED)].map(([, digits]) => Number.parseInt(digits!, 16));
    const written = [...piece].map((character) => character.codePointAt(0)!);
    if (!piece.startsWith('[') || Math.max(...coded, ...written) < 0x80) continue;
    throw refusal('sets of ASCII characters in the grammar', piece.slice(0, 40), 'write others as alternatives, "é" | "è"');
  }
}

/** A structural tag with its schemas, patterns and grammars as they are enforced, in XGrammar's format and in the older one of `structures` and `triggers`. */
function enforceableTag(value: unknown, limits: GrammarLimits): unknown {
  if (Array.isArray(value)) return value.map((inner) => enforceableTag(inner, limits));
  if (typeof value !== 'object' || value === null) return value;
  const { type } = value as { readonly type?: unknown };
  const entries = Object.entries(value).map(([name, inner]) => {
    if (name === 'json_schema' || name === 'schema') return [name, enforceableSchema(inner, limits.maxRepetition)];
    if (type === 'regex' && name === 'pattern' && typeof inner === 'string') return [name, rewrittenPattern(inner, limits)];
    if (type === 'grammar' && name === 'grammar' && typeof inner === 'string') checkSets(inner);
    return [name, enforceableTag(inner, limits)];
  });
  return Object.fromEntries(entries);
}
