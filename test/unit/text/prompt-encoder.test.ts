import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PromptEncoder } from '../../../src/text/prompt-encoder.ts';
import { loadTokenizer, type Tokenizer } from '../../../src/text/tokenizer.ts';

const FOLDER = join(import.meta.dirname, '../../../models/smollm2-135m-instruct');
const OPTIONS = { addSpecialTokens: true };
let tokenizer: Tokenizer;
let prompts: PromptEncoder;

beforeAll(async () => {
  tokenizer = await loadTokenizer(FOLDER);
  prompts = new PromptEncoder(tokenizer, FOLDER);
});

afterAll(() => prompts[Symbol.asyncDispose]());

const TEXTS = ['', 'Hello world', 'The quick brown fox — 漢字 <|im_end|> '.repeat(300), 'a'.repeat(20_000), '-'.repeat(5000)];

it('gives the ids that the tokenizer gives, for texts of any length, in the order that they were asked for', async () => {
  const all = await Promise.all(TEXTS.map((text) => prompts.encode(text, OPTIONS)));
  expect(all).toEqual(TEXTS.map((text) => tokenizer.encode(text, OPTIONS)));
});

it('leaves the event loop to others while a long text is encoded', async () => {
  await prompts.encode(TEXTS[2]!, OPTIONS);
  let turns = 0;
  let encoded = false;
  const turn = () => {
    turns++;
    if (!encoded) setImmediate(turn);
  };
  setImmediate(turn);
  const ids = await prompts.encode('a'.repeat(100_000), OPTIONS);
  encoded = true;
  expect(ids.length).toBeGreaterThan(1000);
  expect(turns).toBeGreaterThan(100);
});

it('fails what waits when it is disposed of, and takes no more', async () => {
  const own = new PromptEncoder(tokenizer, FOLDER);
  const waiting = own.encode('a'.repeat(100_000), OPTIONS);
  const failed = expect(waiting).rejects.toThrow("the tokenizer's thread");
  await own[Symbol.asyncDispose]();
  await failed;
  await expect(own.encode('a'.repeat(100_000), OPTIONS)).rejects.toThrow('disposed');
});
