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
const LONG = ['a'.repeat(100_000)];

it('gives the ids that the tokenizer gives, for texts of any length, in the order that they were asked for', async () => {
  const all = await Promise.all([TEXTS, ...TEXTS.map((text) => [text])].map((texts) => prompts.encode(texts, OPTIONS)));
  expect(all.flat()).toEqual([...TEXTS, ...TEXTS].map((text) => tokenizer.encode(text, OPTIONS)));
});

it.each([
  ['a long text is', LONG],
  ['many short texts are', Array.from({ length: 500 }, (_, i) => `${i}`.padEnd(200, 'ab'))],
])('leaves the event loop to others while %s encoded', async (_, texts) => {
  await prompts.encode([TEXTS[2]!], OPTIONS);
  let turns = 0;
  let encoded = false;
  const turn = () => {
    turns++;
    if (!encoded) setImmediate(turn);
  };
  setImmediate(turn);
  const ids = await prompts.encode(texts, OPTIONS);
  encoded = true;
  expect(ids.flat().length).toBeGreaterThan(1000);
  expect(turns).toBeGreaterThan(100);
});

it('gives up what nobody waits for any more, and goes on with the next', async () => {
  const abort = new AbortController();
  const order: string[] = [];
  const encode = (name: string, signal?: AbortSignal) =>
    prompts.encode(LONG, OPTIONS, signal).then(
      () => order.push(name),
      (error: unknown) => order.push(`${name} ${(error as { code: string }).code}`),
    );
  const jobs = [encode('first'), encode('second', abort.signal), encode('third')];
  abort.abort();
  await Promise.all(jobs);
  expect(order).toEqual(['second aborted', 'first', 'third']);
  await expect(prompts.encode(LONG, OPTIONS, abort.signal)).rejects.toMatchObject({ code: 'aborted' });
});

it('refuses more than it may let wait', async () => {
  const own = new PromptEncoder(tokenizer, FOLDER);
  const gone = ['first', 'second'].map(() => expect(own.encode(LONG, OPTIONS)).rejects.toThrow());
  await expect(own.encode(['x'.repeat(16 * 1024 * 1024)], OPTIONS)).rejects.toMatchObject({ code: 'overloaded' });
  await own[Symbol.asyncDispose]();
  await Promise.all(gone);
});

it('fails what waits when it is disposed of, and takes no more', async () => {
  const own = new PromptEncoder(tokenizer, FOLDER);
  const failed = [
    expect(own.encode(LONG, OPTIONS)).rejects.toThrow("the tokenizer's thread"),
    expect(own.encode(LONG, OPTIONS)).rejects.toThrow('disposed'),
  ];
  await own[Symbol.asyncDispose]();
  await Promise.all(failed);
  await expect(own.encode(LONG, OPTIONS)).rejects.toThrow('disposed');
});
