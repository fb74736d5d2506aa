/** A grammar worker: compiles structures and computes masks, away from the event loop. */
import { parentPort, workerData } from 'node:worker_threads';
import type { CompiledGrammar, GrammarCompiler } from '@mlc-ai/web-xgrammar';
import type { AnswerStructure } from '../core/token-rules.ts';
import type { GrammarReply, GrammarRequest, GrammarVocabulary } from './grammar-messages.ts';
import { StructureMatcher } from './structure-matcher.ts';
import { loadXGrammar } from './xgrammar.ts';

const vocabulary = workerData as GrammarVocabulary;
const port = parentPort!;
const { xgrammar, lastWords, memoryBytes } = loadXGrammar(vocabulary.memoryBytes);
const tokenizerInfo = await xgrammar.TokenizerInfo.createTokenizerInfo(
  [...vocabulary.tokens],
  vocabulary.spelling,
  false,
  vocabulary.vocabSize,
  [...vocabulary.stopIds],
);
const compiler = await xgrammar.GrammarCompiler.createGrammarCompiler(tokenizerInfo, false);
const compiled = new Map<string, CompiledGrammar>();
const matchers = new Map<number, StructureMatcher>();

// Matchers take no turns: each message is answered before the next one is looked at.
let turn = Promise.resolve();
port.on('message', (request: GrammarRequest) => {
  turn = turn.then(() => serve(request));
});
reply({ type: 'ready' });

async function serve(request: GrammarRequest): Promise<void> {
  try {
    if (request.type === 'compile') await compile(request.id, request.key, request.structure);
    else if (request.type === 'look') await look(request);
    else if (request.type === 'close') close(request.matcher);
    else forget(request.key);
  } catch (error) {
    const message = plainWords(lastWords()) || (error instanceof Error ? error.message : 'an error without words');
    reply({ type: 'broken', message });
  }
}

async function compile(id: number, key: string, structure: AnswerStructure): Promise<void> {
  const started = performance.now();
  forget(key);
  const grammar = await compileStructure(compiler, structure);
  compiled.set(key, grammar);
  // What compiles may still be slow to follow: the first masks belong to what is tried.
  using matcher = new StructureMatcher(await xgrammar.GrammarMatcher.createGrammarMatcher(grammar), vocabulary);
  await matcher.masks([]);
  reply({ type: 'compiled', id, ms: performance.now() - started, bytes: memoryBytes() });
}

async function look(request: Extract<GrammarRequest, { type: 'look' }>): Promise<void> {
  let matcher = matchers.get(request.matcher);
  if (matcher === undefined) {
    const grammar = compiled.get(request.key)!;
    const inner = await xgrammar.GrammarMatcher.createGrammarMatcher(grammar);
    matcher = new StructureMatcher(inner, vocabulary);
    matchers.set(request.matcher, matcher);
  }
  const { id, tokens, draft } = request;
  for (const token of tokens) {
    if (!matcher.accept(token)) throw new Error(`token ${token} was emitted and is no part of the structure`);
  }
  const allowed = matcher.count(draft);
  reply({ type: 'counted', id, allowed });
  const masks = await matcher.masks(draft.slice(0, allowed));
  port.postMessage({ type: 'masked', id, masks } satisfies GrammarReply, [masks.buffer as ArrayBuffer]);
}

function close(matcher: number): void {
  matchers.get(matcher)?.[Symbol.dispose]();
  matchers.delete(matcher);
}

function forget(key: string): void {
  compiled.get(key)?.dispose();
  compiled.delete(key);
}

function reply(message: GrammarReply): void {
  port.postMessage(message);
}

/** As vLLM compiles them: any whitespace in JSON, and no properties beside those that a schema declares unless it says so. */
function compileStructure(compiler: GrammarCompiler, structure: AnswerStructure): Promise<CompiledGrammar> {
  switch (structure.kind) {
    case 'json-object':
      return compiler.compileJSONSchema('{"type":"object"}');
    case 'json-schema':
      return compiler.compileJSONSchema(structure.schema);
    case 'regex':
      return compiler.compileStructuralTag({ type: 'regex', pattern: structure.pattern });
    case 'choice':
      return compiler.compileGrammar(`root ::= ${structure.choices.map((choice) => JSON.stringify(choice)).join(' | ')}`);
    case 'grammar':
      return compiler.compileGrammar(structure.ebnf);
    case 'structural-tag':
      return compileTag(compiler, structure.tag);
  }
}

/** In XGrammar's format, or in the older one of `structures` and `triggers`. */
function compileTag(compiler: GrammarCompiler, tag: string): Promise<CompiledGrammar> {
  const { structures, triggers } = JSON.parse(tag) as LegacyTag;
  if (structures === undefined) return compiler.compileStructuralTag(tag);
  const items = structures.map(({ begin, schema, end }) => new xgrammar.StructuralTagItem(begin, schema, end));
  return compiler.compileStructuralTag(items, triggers);
}

interface LegacyTag {
  readonly structures?: readonly { readonly begin: string; readonly schema: Record<string, unknown>; readonly end: string }[];
  readonly triggers: string[];
}

/** "[FATAL] /some/file.cc:12: Check failed: (a) is false: What is wrong" without where it was noticed. */
function plainWords(words: string): string {
  return words.replace(/^\[FATAL\] \S+:\d+: (Check failed: \(.*?\) is false: )?/, '');
}
