import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ToolCallParser } from '../../../../src/server/chat/tool-call-parser.ts';

interface Parsed {
  readonly content: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

/** What the pieces say when they are joined. */
function parse(parts: readonly string[], options?: { maxCalls: number }): Parsed {
  const parser = new ToolCallParser(options);
  let content = '';
  const calls: { name: string; arguments: string }[] = [];
  for (const piece of [...parts.flatMap((part) => parser.push(part)), ...parser.finish()]) {
    if (piece.kind === 'content') content += piece.text;
    else if (piece.kind === 'call') calls[piece.index] = { name: piece.name, arguments: '' };
    else calls[piece.index]!.arguments += piece.text;
  }
  expect(parser.calls).toBe(calls.length);
  return { content, calls };
}

const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

describe('ToolCallParser', () => {
  test.each<[string, string, Parsed]>([
    ['text without calls', 'Hello <b>there</b>', { content: 'Hello <b>there</b>', calls: [] }],
    ['a call', call('f', '{"a": 1}'), { content: '', calls: [{ name: 'f', arguments: '{"a": 1}' }] }],
    [
      'calls behind text, parted by a line break',
      `Let me see.\n${call('f', '{}')}\n${call('g', '{"b": [{"c": "}"}]}')}\n`,
      {
        content: 'Let me see.\n',
        calls: [
          { name: 'f', arguments: '{}' },
          { name: 'g', arguments: '{"b": [{"c": "}"}]}' },
        ],
      },
    ],
    ['blanks ahead of a call', `\n\n${call('f', '{}')}`, { content: '', calls: [{ name: 'f', arguments: '{}' }] }],
    ['text behind a call', `${call('f', '{}')}\nDone.`, { content: '\nDone.', calls: [{ name: 'f', arguments: '{}' }] }],
    ['nothing but blanks', ' \n', { content: ' \n', calls: [] }],
    [
      'tags and quotes inside of strings',
      call('f', '{"a": "</tool_call>\\"<tool_call>{"}'),
      { content: '', calls: [{ name: 'f', arguments: '{"a": "</tool_call>\\"<tool_call>{"}' }] },
    ],
    [
      'arguments ahead of the name',
      '<tool_call>{"arguments": {"a": [1, 2]}, "name": "f"}</tool_call>',
      { content: '', calls: [{ name: 'f', arguments: '{"a":[1,2]}' }] },
    ],
    ['no arguments', '<tool_call>{"name": "now"}</tool_call>', { content: '', calls: [{ name: 'now', arguments: '{}' }] }],
    [
      'a line break in a string, as JSON writes it',
      call('f', '{"code": "a\nb"}'),
      { content: '', calls: [{ name: 'f', arguments: '{"code": "a\\nb"}' }] },
    ],
    ['an escaped name', call('\\u0066', '{}'), { content: '', calls: [{ name: 'f', arguments: '{}' }] }],
    [
      'an answer that ends inside of arguments',
      '<tool_call>{"name": "f", "arguments": {"a": "b',
      { content: '', calls: [{ name: 'f', arguments: '{"a": "b' }] },
    ],
    [
      'an answer that ends ahead of the closing tag',
      '<tool_call>{"name": "f", "arguments": {}}',
      { content: '', calls: [{ name: 'f', arguments: '{}' }] },
    ],
    [
      'an answer that ends ahead of the arguments',
      'x<tool_call>{"name": "f", ',
      { content: 'x<tool_call>{"name": "f", ', calls: [] },
    ],
    ['an answer that ends in an opening tag', 'x<tool_ca', { content: 'x<tool_ca', calls: [] }],
    ['a block without JSON', '<tool_call>f(1)</tool_call>', { content: '<tool_call>f(1)</tool_call>', calls: [] }],
    ['a block without a name', '<tool_call>{"a": 1}</tool_call>', { content: '<tool_call>{"a": 1}</tool_call>', calls: [] }],
    ['an empty name', call('', '{}'), { content: call('', '{}'), calls: [] }],
    [
      'arguments that are no object',
      '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
      { content: '<tool_call>{"name": "f", "arguments": [1]}</tool_call>', calls: [] },
    ],
    [
      'a call behind a block that is none',
      `<tool_call>\noops ${call('f', '{}')}`,
      { content: '<tool_call>\noops ', calls: [{ name: 'f', arguments: '{}' }] },
    ],
    [
      'a call behind an object that is broken off',
      `<tool_call>{"name": f</tool_call>${call('g', '{}')}`,
      { content: '<tool_call>{"name": f</tool_call>', calls: [{ name: 'g', arguments: '{}' }] },
    ],
    [
      'arguments that are broken off',
      '<tool_call>{"name": "f", "arguments": {"a": 1</tool_call>',
      { content: '</tool_call>', calls: [{ name: 'f', arguments: '{"a": 1' }] },
    ],
    [
      'something between the arguments and the closing tag',
      '<tool_call>{"name": "f", "arguments": {}, "id": 7}</tool_call>',
      { content: ', "id": 7}</tool_call>', calls: [{ name: 'f', arguments: '{}' }] },
    ],
    [
      'a name that is longer than what is looked at early',
      call('f'.repeat(600), '{"a": 1}'),
      { content: '', calls: [{ name: 'f'.repeat(600), arguments: '{"a":1}' }] },
    ],
  ])('%s, whole and by character', (_, text, expected) => {
    expect(parse([text])).toEqual(expected);
    expect(parse([...text])).toEqual(expected);
  });

  test('further calls than allowed are content', () => {
    const text = `${call('f', '{}')}\n${call('g', '{}')}`;
    const expected = { content: `\n${call('g', '{}')}`, calls: [{ name: 'f', arguments: '{}' }] };
    expect(parse([text], { maxCalls: 1 })).toEqual(expected);
    expect(parse([...text], { maxCalls: 1 })).toEqual(expected);
  });

  test('passes arguments on as they come', () => {
    const parser = new ToolCallParser();
    expect(parser.push('<tool_call>{"name": "f", "arguments": ')).toEqual([]);
    expect(parser.push('{"a')).toEqual([
      { kind: 'call', index: 0, name: 'f' },
      { kind: 'arguments', index: 0, text: '{"a' },
    ]);
    expect(parser.push('": 1}}</tool')).toEqual([{ kind: 'arguments', index: 0, text: '": 1}' }]);
    expect(parser.push('_call>')).toEqual([]);
  });

  const fragments = fc.constantFrom(
    '<tool_call>',
    '</tool_call>',
    '<tool_call>{"name": "f", "arguments": {',
    '{"name": "g", "arguments": {"a": 1}}',
    '"arguments": {}',
    '{"name"',
    '}',
    '{',
    '"',
    '\\',
    '\n',
    ' ',
    '<',
    'text',
    '<tool',
    ',',
  );
  const texts = fc.array(fragments, { maxLength: 14 }).map((list) => list.join(''));

  test('says the same however the text is cut', () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(200), { maxLength: 20 }), (text, cuts) => {
        expect(parse(cut(text, cuts))).toEqual(parse([text]));
      }),
      { numRuns: 1000 },
    );
  });

  test('loses no word, whatever the model writes', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const { content, calls } = parse([text]);
        if (calls.length === 0) expect(content).toBe(text);
        const said = content + calls.map((made) => made.arguments).join('');
        expect(count(said, 'text')).toBe(count(text, 'text'));
      }),
      { numRuns: 1000 },
    );
  });

  test('takes time in proportion to the text, also when nothing becomes a call', () => {
    const text = '<tool_call>{"a": '.repeat(50_000);
    const started = performance.now();
    parse([text]);
    parse(
      cut(
        text.slice(0, 60_000),
        Array.from({ length: 20_000 }, (_, i) => i * 3),
      ),
    );
    expect(performance.now() - started).toBeLessThan(3000);
  });
});

function cut(text: string, cuts: readonly number[]): string[] {
  const places = [...new Set([0, ...cuts.filter((at) => at < text.length), text.length])].sort((a, b) => a - b);
  return places.slice(1).map((end, i) => text.slice(places[i], end));
}

function count(text: string, word: string): number {
  return text.split(word).length - 1;
}
