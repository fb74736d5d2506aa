/** Structures in the vocabulary of the model in the repository. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AnswerStructure } from '../../../src/core/token-rules.ts';
import { GrammarService } from '../../../src/grammar/grammar-service.ts';
import { loadTokenizer, type Tokenizer } from '../../../src/text/tokenizer.ts';
import { PATIENT } from '../../support/patient-limits.ts';
import { allowedNow } from '../../support/structure-walk.ts';

const VOCAB_SIZE = 49_152;
const EOS = 2;

let tokenizer: Tokenizer;
let service: GrammarService;
beforeAll(async () => {
  tokenizer = await loadTokenizer(join(import.meta.dirname, '../../../models/smollm2-135m-instruct'));
  service = new GrammarService({ tokenizer, vocabSize: VOCAB_SIZE, eosTokenIds: [EOS], limits: PATIENT });
});
afterAll(() => service[Symbol.asyncDispose]());

const cases: readonly (readonly [string, AnswerStructure, string])[] = [
  ['JSON', { kind: 'json-object' }, '{"greeting": "héllo 😀 \\n", "n": [1.5e3, true, null]}'],
  [
    'a schema',
    { kind: 'json-schema', schema: '{"type":"array","items":{"type":"string","pattern":"^.+$"}}' },
    '["ünï", "x y"]',
  ],
  ['a regular expression', { kind: 'regex', pattern: '[^\\s]+@[a-z]+\\.com' }, 'ünï@example.com'],
  ['choices', { kind: 'choice', choices: ['日本語', 'none of them'] }, '日本語'],
];
it.each(cases)('follows %s through every token, beginnings of characters included', async (_, structure, text) => {
  using processor = service.open(await service.compile(structure));
  const tokens = [...tokenizer.encode(text, { addSpecialTokens: false }), EOS];
  expect(await processor.admit!([...tokens, tokens[0]!])).toBe(tokens.length);
  await processor.prepare!(tokens);
  for (const token of tokens) {
    const allowed = allowedNow(processor, VOCAB_SIZE);
    expect(allowed).toContain(token);
    expect(allowed.length).toBeLessThan(VOCAB_SIZE);
    expect(allowed.filter((id) => tokenizer.specialIds.has(id) && id !== EOS)).toEqual([]);
    processor.push(token);
  }
  expect(processor.ended).toBe(true);
});
