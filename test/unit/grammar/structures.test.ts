import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnswerStructure } from '../../../src/core/token-rules.ts';
import { GrammarService } from '../../../src/grammar/grammar-service.ts';
import { END, SPECIAL, TINY_TOKENIZER, tinyText, tinyTokens, VOCAB_SIZE } from '../../support/grammar-vocabulary.ts';
import { PATIENT } from '../../support/patient-limits.ts';
import { allowedNow, seededRandom, type Wish, walk, walkWithDrafts } from '../../support/structure-walk.ts';

const PERSON = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 8 },
    kind: { enum: ['cat', 'dog', 3, null] },
    tags: { type: 'array', items: { enum: ['a', 'b'] }, minItems: 1, maxItems: 3 },
    size: { type: 'object', properties: { x: { type: 'integer' }, ok: { type: 'boolean' } }, required: ['x'] },
  },
  required: ['name', 'size'],
  additionalProperties: false,
};

const SCHEMAS: readonly object[] = [
  PERSON,
  { type: 'integer', minimum: 17, exclusiveMaximum: 121 },
  { type: 'integer', minimum: -121, maximum: -100 },
  { type: 'integer', exclusiveMinimum: 0 },
  { type: 'string', pattern: '^a.[^b]\\W$' },
  { type: 'string', pattern: '[a-c\\-]{2,3}(x|\\.)+' },
  { type: 'string', format: 'date' },
  { type: 'object', additionalProperties: { type: 'boolean' } },
  { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: { type: 'string' } },
  { type: 'object', properties: { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } }, minProperties: 2 },
  { type: 'array', prefixItems: [{ type: 'boolean' }, { const: 'x' }], items: false, minItems: 2 },
  { type: ['boolean', 'null'] },
  { anyOf: [{ type: 'boolean' }, { type: 'array', items: { type: 'null' }, maxItems: 2 }] },
  {
    $defs: { list: { anyOf: [{ type: 'null' }, { type: 'array', items: { $ref: '#/$defs/list' }, maxItems: 2 }] } },
    $ref: '#/$defs/list',
  },
];

const STRUCTURES: readonly AnswerStructure[] = [
  { kind: 'json-object' },
  ...SCHEMAS.map((schema) => ({ kind: 'json-schema' as const, schema: JSON.stringify(schema) })),
  { kind: 'regex', pattern: '[ab]{2,5}@(x|yy)\\.com' },
  { kind: 'choice', choices: ['yes', 'no', 'yes, "really"\n', 'ü'] },
  { kind: 'grammar', ebnf: 'root ::= item ("," item)*\nitem ::= [0-9] | "(" root ")"' },
  {
    kind: 'structural-tag',
    tag: JSON.stringify({
      type: 'structural_tag',
      format: {
        type: 'tag',
        begin: '<f>',
        content: {
          type: 'json_schema',
          json_schema: { type: 'object', properties: { x: { type: 'boolean' } }, required: ['x'] },
        },
        end: '</f>',
      },
    }),
  },
];

/** Ends are liked, and what leads there. */
function random(seed: number): Wish {
  return (history, token) => {
    const draw = seededRandom(Math.imul(seed * 1009 + history.length, 7919) + token * 104_729);
    draw();
    const eager = token === END ? 0.5 : '"}]0,):'.includes(tinyText([token])) && tinyText([token]) !== '' ? 0.3 : 0;
    return draw() + eager;
  };
}

/** Of every length that is safe, and the ends. */
const INTEGERS = [
  ...Array.from({ length: 54 }, (_, power) => 2n ** BigInt(power) - 1n),
  ...Array.from({ length: 16 }, (_, power) => 10n ** BigInt(power)),
  9_007_199_254_740_990n,
  8_999_999_999_999_999n,
];

describe('structures', () => {
  let service: GrammarService;
  beforeAll(() => {
    service = new GrammarService({ tokenizer: TINY_TOKENIZER, vocabSize: VOCAB_SIZE, eosTokenIds: [END], limits: PATIENT });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  async function complete(structure: AnswerStructure, text: string): Promise<boolean> {
    using processor = service.open(await service.compile(structure));
    const tokens = [...tinyTokens(text), END];
    expect(tokens).not.toContain(-1);
    return (await processor.admit!(tokens)) === tokens.length;
  }

  const cases: readonly (readonly [string, AnswerStructure, readonly string[], readonly string[]])[] = [
    ['any JSON object', STRUCTURES[0]!, ['{}', '{"a": [1, {"b": null}]}'], ['[]', '1', '{', '{"a"}', '{} ']],
    [
      'a schema',
      { kind: 'json-schema', schema: JSON.stringify(PERSON) },
      ['{"name": "Bo", "size": {"x": 1}}', '{"name":"","kind":3,"tags":["a"],"size":{"x":-2,"ok":true}}'],
      [
        '{"name": "Bo"}',
        '{"size": {"x": 1}}',
        '{"name": "Bo", "size": {"ok": true}}',
        '{"name": "Bo", "size": {"x": 1}, "more": 1}',
        '{"name": "Bo", "kind": "cow", "size": {"x": 1}}',
        '{"name": "Bo", "tags": [], "size": {"x": 1}}',
        '{"name": "far too long", "size": {"x": 1}}',
      ],
    ],
    [
      'integers between bounds',
      { kind: 'json-schema', schema: JSON.stringify(SCHEMAS[1]) },
      ['17', '99', '120'],
      ['16', '121', '1', ''],
    ],
    ...[Number.MIN_SAFE_INTEGER, 0, 1].map((minimum): [string, AnswerStructure, string[], string[]] => [
      `the integers that a double can hold from ${minimum}`,
      { kind: 'json-schema', schema: JSON.stringify({ type: 'integer', minimum, maximum: Number.MAX_SAFE_INTEGER }) },
      [...INTEGERS.filter((value) => value >= minimum), BigInt(minimum)].map(String),
      [...INTEGERS.map((value) => -value).filter((value) => value < minimum), BigInt(minimum) - 1n, 2n ** 53n]
        .concat(Array.from({ length: 20 }, (_, index) => 2n ** 53n + 7n ** BigInt(index)))
        .map(String),
    ]),
    [
      'declared properties',
      { kind: 'json-schema', schema: JSON.stringify(SCHEMAS[8]) },
      ['{}', '{"a": 12}'],
      ['{"a": "x"}', '{"a": 1, "a": "x"}', '{"b": 1}'],
    ],
    ['a regular expression', { kind: 'regex', pattern: '[ab]{2,3}|c' }, ['ab', 'bbb', 'c'], ['a', 'abab', 'cc', '']],
    ['choices', { kind: 'choice', choices: ['yes', 'no "no"\n', ''] }, ['yes', 'no "no"\n', ''], ['ye', 'yes!', 'no']],
    ['a grammar', { kind: 'grammar', ebnf: 'root ::= "(" root ")" | [0-9]' }, ['5', '((5))'], ['((5)', '55', '()']],
    [
      'a structural tag',
      {
        kind: 'structural-tag',
        tag: JSON.stringify({
          structures: [{ begin: '<f>', schema: { type: 'integer' }, end: '</f>' }],
          triggers: ['<f'],
        }),
      },
      ['no call', 'a <f>12</f> b <f>3</f>'],
      ['<f>x</f>', '<f>12', '<fx'],
    ],
  ];
  it.each(cases)('allows %s and nothing else', async (_, structure, yes, no) => {
    for (const text of yes) expect(await complete(structure, text), text).toBe(true);
    for (const text of no) expect(await complete(structure, text), text).toBe(false);
  });

  it('never allows special tokens, nor padding of the vocabulary', async () => {
    using processor = service.open(await service.compile({ kind: 'regex', pattern: '(.|\\n)*' }));
    await processor.prepare!([]);
    const allowed = allowedNow(processor, VOCAB_SIZE);
    expect(allowed).toContain(END);
    expect(allowed).not.toContain(SPECIAL);
    expect(Math.max(...allowed)).toBeLessThan(TINY_TOKENIZER.vocabSize);
  });

  it('allows the end only where the structure may end, and nothing behind it', async () => {
    using processor = service.open(await service.compile({ kind: 'choice', choices: ['a', 'ab'] }));
    const [a] = tinyTokens('a') as [number];
    await processor.prepare!([]);
    expect(allowedNow(processor, VOCAB_SIZE)).not.toContain(END);
    processor.push(a);
    await processor.prepare!([]);
    expect(allowedNow(processor, VOCAB_SIZE)).toEqual([END, ...tinyTokens('b')]);
    expect(processor.ended).toBe(false);
    processor.push(END);
    expect(processor.ended).toBe(true);
    expect(await processor.admit!([END, END, a])).toBe(2);
    await processor.prepare!([END, END]);
    for (let row = 0; row < 3; row++) {
      expect(allowedNow(processor, VOCAB_SIZE)).toEqual([END]);
      processor.push(END);
    }
  });

  it('gets ready for another draft than the one it was asked about', async () => {
    using processor = service.open(await service.compile({ kind: 'regex', pattern: 'a[0-9]|b[xyz]' }));
    const [a, one, b, x, y] = tinyTokens('a1bxy') as [number, number, number, number, number];
    expect(await processor.admit!([a, one, one])).toBe(2);
    await processor.prepare!([b, x]);
    processor.push(b);
    expect(allowedNow(processor, VOCAB_SIZE)).toEqual(tinyTokens('xyz'));
    processor.push(y);
    expect(() => allowedNow(processor, VOCAB_SIZE)).not.toThrow();
    processor.push(END);
    expect(() => allowedNow(processor, VOCAB_SIZE)).toThrow('prepare was not called');
  });

  const jsonStructures = STRUCTURES.filter(({ kind }) => kind.startsWith('json'));
  it.each(jsonStructures)('writes only what a validator accepts: %j', async (structure) => {
    const schema = structure.kind === 'json-schema' ? JSON.parse(structure.schema) : { type: 'object' };
    const validate = new Ajv2020({ strict: false, formats: { date: /^\d{4}-\d\d-\d\d$/ } }).compile(schema);
    const compiled = await service.compile(structure);
    let ended = 0;
    for (let seed = 0; seed < 25; seed++) {
      using processor = service.open(compiled);
      const text = tinyText(await walk(processor, VOCAB_SIZE, random(seed), 120));
      if (!processor.ended) continue;
      ended++;
      expect(validate(JSON.parse(text)), `${text} ${JSON.stringify(validate.errors)}`).toBe(true);
    }
    expect(ended).toBeGreaterThan(12);
  });

  it.each(STRUCTURES)('chooses with drafts what it chooses without: %j', async (structure) => {
    const compiled = await service.compile(structure);
    for (let seed = 0; seed < 4; seed++) {
      const wish = random(seed);
      using plain = service.open(compiled);
      const answer = await walk(plain, VOCAB_SIZE, wish, 60);
      using speculating = service.open(compiled);
      const draw = seededRandom(seed);
      const drafter = (history: readonly number[]) =>
        answer
          .slice(history.length, history.length + Math.floor(draw() * 8))
          .map((token) => (draw() < 0.15 ? Math.floor(draw() * VOCAB_SIZE) : token));
      expect(await walkWithDrafts(speculating, VOCAB_SIZE, wish, 60, drafter)).toEqual(answer);
    }
  });

  it('serves many answers of one structure at a time', async () => {
    const compiled = await service.compile({ kind: 'json-schema', schema: JSON.stringify(PERSON) });
    const one = async (seed: number) => {
      using processor = service.open(compiled);
      return await walk(processor, VOCAB_SIZE, random(seed), 60);
    };
    const together = await Promise.all([1, 2, 3, 4, 5, 6].map(one));
    for (const [index, answer] of together.entries()) expect(await one(index + 1)).toEqual(answer);
  });
});
