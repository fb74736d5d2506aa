import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnswerStructure } from '../../../../src/core/token-rules.ts';
import { GrammarService } from '../../../../src/grammar/grammar-service.ts';
import { ToolCallParser } from '../../../../src/server/chat/tool-call-parser.ts';
import { toolStructure } from '../../../../src/server/chat/tool-structure.ts';
import type { Tool, ToolUse } from '../../../../src/server/chat/tools.ts';
import { END, TINY_TOKENIZER, tinyText, tinyTokens, VOCAB_SIZE } from '../../../support/grammar-vocabulary.ts';
import { seededRandom, walk } from '../../../support/structure-walk.ts';

const PARAMETERS = {
  type: 'object',
  properties: { a: { type: 'integer', minimum: 0, maximum: 9 }, b: { enum: ['</tool_call>', 'x'] } },
  required: ['a'],
  additionalProperties: false,
};
const tool = (name: string, described: Partial<Tool['function']> = {}): Tool => ({
  type: 'function',
  function: { name, ...described },
});
const F = tool('f', { parameters: PARAMETERS });
const NOW = tool('now');
const ANY = tool('any', { parameters: {} });

const use = (fields: Partial<ToolUse>): ToolUse => ({ tools: [F, NOW], choice: 'required', parallel: true, ...fields });
const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

describe('the structure of tool calls', () => {
  let service: GrammarService;
  beforeAll(() => {
    service = new GrammarService({ tokenizer: TINY_TOKENIZER, vocabSize: VOCAB_SIZE, eosTokenIds: [END] });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  async function allows(structure: AnswerStructure, text: string): Promise<boolean> {
    using processor = service.open(await service.compile(structure));
    const tokens = [...tinyTokens(text), END];
    return (await processor.admit!(tokens)) === tokens.length;
  }

  const both = `${call('f', '{"a": 1}')}\n${call('now', '{}')}`;

  test.each<readonly [string, ToolUse, AnswerStructure | null, readonly string[], readonly string[]]>([
    [
      'required',
      use({}),
      null,
      [call('f', '{"a": 1, "b": "x"}'), call('now', '{}'), both],
      ['Hello', '', call('g', '{}'), call('f', '{}'), call('now', '{"a": 1}'), `Ok. ${call('now', '{}')}`, `${both}\nDone.`],
    ],
    ['required, one at a time', use({ parallel: false }), null, [call('now', '{}')], [both, '']],
    [
      'required, with any arguments',
      use({ tools: [ANY] }),
      null,
      [call('any', '{}'), call('any', '{"x": [1]}')],
      [call('any', '[]')],
    ],
    [
      'strict, beside any text',
      use({ choice: 'auto', tools: [tool('f', { parameters: PARAMETERS, strict: true })] }),
      null,
      ['', 'Hello', `Ok. ${call('f', '{"a": 1}')} Done.`],
      [call('f', '{}'), call('g', '{}')],
    ],
    [
      'or JSON',
      use({ choice: 'auto' }),
      { kind: 'json-object' },
      ['{}', '{"a": 1}', call('f', '{"a": 1}')],
      ['Hello', '', both],
    ],
    [
      'or JSON by a schema',
      use({ choice: 'auto' }),
      { kind: 'json-schema', schema: '{"type": "boolean"}' },
      ['true', call('now', '{}')],
      ['{}'],
    ],
    [
      'or a text among some',
      use({ choice: 'auto' }),
      { kind: 'choice', choices: ['yes', 'no'] },
      ['yes', call('now', '{}')],
      ['maybe', call('f', '{}')],
    ],
    ['or a match', use({ choice: 'auto' }), { kind: 'regex', pattern: '[ab]{2}' }, ['ab', call('now', '{}')], ['a']],
    [
      'or by a grammar',
      use({ choice: 'auto' }),
      { kind: 'grammar', ebnf: 'root ::= "x" | "(" root ")"' },
      ['(x)', call('now', '{}')],
      ['('],
    ],
  ])('allows calls that are %s', async (_, toolUse, structure, yes, no) => {
    const combined = toolStructure(toolUse, structure)!;
    for (const text of yes) expect(await allows(combined, text), text).toBe(true);
    for (const text of no) expect(await allows(combined, text), text).toBe(false);
  });

  test('is none where the model may do as it likes', () => {
    expect(toolStructure(use({ choice: 'auto' }), null)).toBeNull();
  });

  test('leaves no room for tags of the request', () => {
    const tag = { kind: 'structural-tag', tag: '{}' } as const;
    expect(() => toolStructure(use({ choice: 'auto' }), tag)).toThrow(
      expect.objectContaining({ code: 'invalid_request', details: expect.objectContaining({ param: 'tools' }) }),
    );
  });

  test('whatever a model writes by it is calls of the tools with valid arguments', async () => {
    const validate = new Ajv2020().compile(PARAMETERS);
    const compiled = await service.compile(toolStructure(use({}), null)!);
    let ended = 0;
    for (let seed = 0; seed < 30; seed++) {
      const draw = seededRandom(seed * 7919 + 1);
      const wishes = Array.from({ length: VOCAB_SIZE }, draw);
      using processor = service.open(compiled);
      const tokens = await walk(
        processor,
        VOCAB_SIZE,
        (history, token) => (wishes[token]! * 31 + history.length * 0.17) % 1,
        160,
      );
      const parser = new ToolCallParser();
      const pieces = [...parser.push(tinyText(tokens)), ...parser.finish()];
      if (!tokens.includes(END)) continue;
      ended += 1;
      expect(pieces.filter(({ kind }) => kind === 'content')).toEqual([]);
      expect(parser.calls).toBeGreaterThan(0);
      const calls = Array.from({ length: parser.calls }, (_, at) => ({
        name: pieces.find((piece) => piece.kind === 'call' && piece.index === at),
        text: pieces.flatMap((piece) => (piece.kind === 'arguments' && piece.index === at ? piece.text : [])).join(''),
      }));
      for (const { name, text } of calls) {
        const made = JSON.parse(text) as object;
        if (name?.kind === 'call' && name.name === 'f') expect(validate(made), text).toBe(true);
        else expect(made).toEqual({});
      }
    }
    expect(ended).toBeGreaterThan(5);
  });
});
