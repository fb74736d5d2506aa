import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { AnswerStructure } from '../../../src/core/token-rules.ts';
import type { GrammarLimits } from '../../../src/grammar/grammar-limits.ts';
import { GrammarService } from '../../../src/grammar/grammar-service.ts';
import { eventLoopUtilization } from '../../support/event-loop.ts';
import { END, TINY_TOKENIZER, tinyTokens, VOCAB_SIZE } from '../../support/grammar-vocabulary.ts';
import { allowedNow, walk } from '../../support/structure-walk.ts';

const opened: GrammarService[] = [];
function serve(limits: Partial<GrammarLimits> = {}): GrammarService {
  const service = new GrammarService({ tokenizer: TINY_TOKENIZER, vocabSize: VOCAB_SIZE, eosTokenIds: [END], limits });
  opened.push(service);
  return service;
}
afterEach(async () => {
  for (const service of opened.splice(0)) await service[Symbol.asyncDispose]();
});

const regex = (pattern: string): AnswerStructure => ({ kind: 'regex', pattern });
const schema = (value: unknown): AnswerStructure => ({ kind: 'json-schema', schema: JSON.stringify(value) });
const ENDLESS_PATTERN = '((((a|aa|[a-z]{1,100})*){1,9000}){1,9000}){1,9000}x';
const ENDLESS = regex(ENDLESS_PATTERN);

describe('structures that are refused', () => {
  const nested = (depth: number): unknown => (depth === 0 ? { type: 'null' } : { type: 'array', items: nested(depth - 1) });
  const refused: readonly (readonly [string, AnswerStructure])[] = [
    ['expected at most 64 levels of brackets in the JSON schema', schema(nested(64))],
    ['expected at most 65536 bytes in the regular expression', regex('a'.repeat(65_537))],
    ['expected at most 10000 repetitions in the regular expression', regex('a{1,100000}')],
    ['expected at most 10000 repetitions in the grammar', { kind: 'grammar', ebnf: 'root ::= "a"{ 20000 }' }],
    [
      'at most 262144 bytes in the json schema with its ranges listed',
      schema({
        type: 'array',
        prefixItems: Array.from({ length: 500 }, () => ({ type: 'integer', minimum: 1, maximum: 900 })),
      }),
    ],
    ['expected at most 64 levels of brackets in the regular expression', regex(`${'('.repeat(65)}a${')'.repeat(65)}`)],
    ['expected at most 1024 choices', { kind: 'choice', choices: Array.from({ length: 1025 }, String) }],
    ['expected at least one choice', { kind: 'choice', choices: [] }],
    ['expected json in the json schema', { kind: 'json-schema', schema: '{' }],
    ['uniqueitems at #', schema({ type: 'array', uniqueItems: true })],
    [
      'uniqueitems at #',
      { kind: 'structural-tag', tag: JSON.stringify({ format: { type: 'json_schema', json_schema: { uniqueItems: true } } }) },
    ],
    ['lookahead is not supported', regex('(?=a)b')],
    ['the parenthesis is not closed', regex('(a')],
    ['rule "b" is not defined', { kind: 'grammar', ebnf: 'root ::= b' }],
    ['root rule with name "root" is not found', { kind: 'grammar', ebnf: 'start ::= "a"' }],
    ['unsupported type "text"', schema({ type: 'text' })],
    ['cannot find field', schema({ $ref: '#/$defs/none' })],
    ['that can be enforced', { kind: 'structural-tag', tag: '{"format":{"type":"none"}}' }],
  ];

  it('are told what is wrong, and the next one is served', async () => {
    const service = serve();
    for (const [message, structure] of refused) {
      const error: unknown = await service.compile(structure).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'invalid_request', details: { param: 'structure' } });
      expect(String(error).toLowerCase()).toContain(message.toLowerCase());
      await expect(service.compile(structure)).rejects.toThrow(String(error).slice(0, 20).replace('AppError: ', ''));
    }
    using processor = service.open(await service.compile(regex('ab')));
    expect(await processor.admit!(tinyTokens('ab'))).toBe(2);
  });

  it('are looked through in no time, whatever they are', async () => {
    const service = serve();
    const started = performance.now();
    const spaces = ' '.repeat(60_000);
    const long = [
      regex(`a{1,${spaces}`),
      regex(`${'{'.repeat(60)}${spaces}`),
      { kind: 'grammar' as const, ebnf: `root ::= b{1${spaces}` },
    ];
    const all = long.map((structure) => service.compile(structure).catch((error: unknown) => error));
    expect(performance.now() - started).toBeLessThan(2000);
    for (const error of await Promise.all(all)) expect(error).toMatchObject({ code: 'invalid_request' });
  });

  it('need a model that ends its answers', async () => {
    const service = new GrammarService({ tokenizer: TINY_TOKENIZER, vocabSize: VOCAB_SIZE, eosTokenIds: [] });
    await expect(service.compile(regex('a'))).rejects.toThrow('end-of-sequence token');
    await service[Symbol.asyncDispose]();
  });
});

describe('structures that take long', () => {
  it('are refused in time while the event loop is free and others go on', async () => {
    const service = serve({ compileMs: 1500 });
    using other = service.open(await service.compile(regex('[ab]+c')));
    const hostile = service.compile(ENDLESS).catch((error: unknown) => error);
    expect(await eventLoopUtilization(1000)).toBeLessThan(0.5);
    const [c] = tinyTokens('c') as [number];
    const answer = await walk(other, VOCAB_SIZE, (history, id) => (id === c && history.length < 20 ? -1 : id), 40);
    expect(answer.length).toBeGreaterThan(19);
    expect(await hostile).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('more than 1500 ms') });
    const again = performance.now();
    await expect(service.compile(ENDLESS)).rejects.toThrow('more than 1500 ms');
    expect(performance.now() - again).toBeLessThan(1400);
    await service.compile(regex('other'));
  });

  it('get a worker of their own, and only so many', async () => {
    const service = serve({ sharedCompileMs: -1, ownWorkers: 1 });
    const [a] = tinyTokens('a') as [number];
    const compiled = await service.compile(regex('a'));
    const first = service.open(compiled);
    compiled[Symbol.dispose]();
    await expect(service.compile(regex('b'))).rejects.toThrow(expect.objectContaining({ code: 'overloaded' }));
    expect(await first.admit!([a])).toBe(1);
    first[Symbol.dispose]();
    using second = service.open(await service.compile(regex('ba')));
    expect(await second.admit!(tinyTokens('ba'))).toBe(2);
  });

  it('keep that worker while an answer follows them, whoever comes', async () => {
    const service = serve({ sharedCompileMs: -1, cacheEntries: 1, ownWorkers: 3 });
    using first = service.open(await service.compile(regex('ab')));
    for (const pattern of ['b', 'c']) {
      const next = service.open(await service.compile(regex(pattern)));
      next[Symbol.dispose]();
    }
    expect(await first.admit!(tinyTokens('ab'))).toBe(2);
  });

  it('keep that worker from when they are compiled, until an answer follows them', async () => {
    const service = serve({ sharedCompileMs: -1, cacheEntries: 1, ownWorkers: 1 });
    const compiled = await service.compile(regex('ab'));
    await expect(service.compile(regex('b'))).rejects.toThrow(expect.objectContaining({ code: 'overloaded' }));
    using processor = service.open(compiled);
    compiled[Symbol.dispose]();
    compiled[Symbol.dispose]();
    await expect(service.compile(regex('b'))).rejects.toThrow(expect.objectContaining({ code: 'overloaded' }));
    expect(await processor.admit!(tinyTokens('ab'))).toBe(2);
    processor[Symbol.dispose]();
    using next = service.open(await service.compile(regex('b')));
    expect(await next.admit!(tinyTokens('b'))).toBe(1);
  });

  it('end the answer when masks do not come in time; others go on in another worker', async () => {
    const service = serve({ stepMs: 1000, compileMs: 20_000, sharedCompileMs: 20_000 });
    const [a, b] = tinyTokens('ab') as [number, number];
    using other = service.open(await service.compile(regex('(ab)*c')));
    await other.prepare!([]);
    other.push(a);
    using slow = service.open(await service.compile(regex('z(((a|aa|aaa|[a-z]{1,50})*){1,900}){1,100}')));
    const [z] = tinyTokens('z') as [number];
    const draft = [z, ...tinyTokens('abababababababababababababababab')];
    const following = slow.admit!(draft);
    const going = other.admit!([b, a, b, b]);
    const refusal = await Promise.resolve(following)
      .then(() => slow.prepare!(draft))
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('more than 1000 ms') });
    expect(await going).toBe(3);
    await other.prepare!([b]);
    expect(allowedNow(other, VOCAB_SIZE)).toEqual([b]);
    other.push(b);
    expect(allowedNow(other, VOCAB_SIZE)).toEqual(expect.arrayContaining(tinyTokens('ac')));
  });
});

describe('memory', () => {
  it('is bounded: a structure that needs more is refused', async () => {
    const service = serve({ memoryBytes: 17 * 2 ** 20, compileMs: 20_000, maxBytes: 2 ** 20 });
    const large = {
      type: 'array',
      items: { enum: Array.from({ length: 6000 }, (_, index) => `value ${index}`) },
      minItems: 4000,
      maxItems: 9000,
    };
    await expect(service.compile(schema(large))).rejects.toThrow('it needs more than 17 MiB of memory');
    await service.compile(regex('a'));
  });

  it('is given back: structures that nobody uses make room', async () => {
    const service = serve({ cacheEntries: 2 });
    const kept = service.open(await service.compile(regex('a0')));
    for (let index = 1; index < 6; index++) await service.compile(regex(`a${index}`));
    expect(await kept.admit!(tinyTokens('a0'))).toBe(2);
    kept[Symbol.dispose]();
    using again = service.open(await service.compile(regex('a1')));
    expect(await again.admit!(tinyTokens('a1'))).toBe(2);
  });
});

describe('a grammar service', () => {
  it('leaves no worker when it is disposed of, and ends what waits', async () => {
    const threads = () => readdirSync('/proc/self/task').length;
    const before = threads();
    const service = serve();
    const processor = service.open(await service.compile(regex('a')));
    expect(threads()).toBeGreaterThan(before);
    const waiting = service.compile(regex('b{1,9}')).catch((error: unknown) => error);
    await service[Symbol.asyncDispose]();
    expect(await waiting).toMatchObject({ code: 'disposed' });
    await expect(processor.admit!(tinyTokens('a'))).rejects.toThrow();
    processor[Symbol.dispose]();
    await expect(service.compile(regex('a'))).rejects.toThrow('disposed');
    await expect.poll(threads, { timeout: 5000 }).toBeLessThanOrEqual(before);
  });

  it('lets a caller go who no longer waits', async () => {
    const service = serve();
    const abort = new AbortController();
    const compiling = service.compile(regex('a+'), abort.signal);
    abort.abort();
    await expect(compiling).rejects.toThrow(expect.objectContaining({ code: 'aborted' }));
    await service.compile(regex('a+'));
  });

  it('does not compile what nobody waits for any more', async () => {
    const service = serve({ compileMs: 20_000 });
    await service.compile(regex('a'));
    const started = performance.now();
    const abort = new AbortController();
    const first = service.compile(regex('first'));
    const left = [1, 2, 3].map((index) => service.compile(regex(`${ENDLESS_PATTERN}${index}`), abort.signal));
    abort.abort();
    for (const compiling of left) await expect(compiling).rejects.toThrow(expect.objectContaining({ code: 'aborted' }));
    await first;
    await service.compile(regex('last'));
    expect(performance.now() - started).toBeLessThan(19_000);
  });

  it('stops compiling when the last caller has gone', async () => {
    const service = serve({ compileMs: 20_000 });
    await service.compile(regex('a'));
    const abort = new AbortController();
    const endless = service.compile(ENDLESS, abort.signal);
    const behind = service.compile(regex('b'));
    setTimeout(() => abort.abort(), 200);
    await expect(endless).rejects.toThrow(expect.objectContaining({ code: 'aborted' }));
    const left = performance.now();
    await behind;
    expect(performance.now() - left).toBeLessThan(10_000);
  });

  it('lets only so many wait', async () => {
    const service = serve({ maxWaiting: 2 });
    const all = [1, 2, 3].map((count) =>
      service.compile(regex(`a{${count}}`)).then(
        () => null,
        (error: { code: string }) => error.code,
      ),
    );
    expect(await Promise.all(all)).toEqual([null, null, 'overloaded']);
  });
});
