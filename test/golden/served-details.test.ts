/** What answers tell beside their text, by the real pair: the same with drafts, without, and in a stream. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { createApp } from '../../src/server/app.ts';
import { completion } from '../../src/server/schemas/responses/answers.ts';
import { joinChoices } from '../support/join-chunks.ts';
import { ssePayloads } from '../support/read-sse.ts';
import { createServerFixture } from '../support/server-fixture.ts';
import { post, type TestApp } from '../support/server-requests.ts';
import { openTestbed, testbedPrompts } from '../support/testbed-engine.ts';

const cacheDir = mkdtempSync(join(tmpdir(), 'served-details-'));
let opened: OpenedEngine;
let app: TestApp;

beforeAll(async () => {
  opened = await openTestbed({ cacheDir });
  app = createApp(createServerFixture({ status: () => ({ state: 'ready', engine: opened.engine }) }).options);
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  rmSync(cacheDir, { recursive: true });
});

const json = async (path: string, body: object) => (await post(app, path, body)).json();
const answer = async (body: object) => completion.parse(await json('/v1/completions', body));

async function promptOf(index: number): Promise<string> {
  const { messages } = testbedPrompts()[index]!;
  const rendered = (await json('/v1/chat/completions/render', { messages })) as { data: { text: string }[] };
  return rendered.data[0]!.text;
}

describe.each([0, 20, 45])('prompt %i', (index) => {
  test.each([
    { logprobs: 3, echo: true, return_token_ids: true, skip_special_tokens: false },
    { logprobs: 0, echo: true },
    { logprobs: 0, temperature: 0.8, seed: 7, stop: [' the'] },
    { logprobs: 2, repetition_penalty: 1.3, presence_penalty: 0.5, min_tokens: 20, bad_words: ['a', 'is'] },
  ])('tells the same with drafts, without and in a stream: %j', async (fields) => {
    const body = { prompt: await promptOf(index), max_tokens: 32, temperature: 0, add_special_tokens: false, ...fields };
    const drafted = await answer(body);
    expect((await answer({ ...body, speculative: false })).choices).toEqual(drafted.choices);
    const stream = await (await post(app, '/v1/completions', { ...body, stream: true })).text();
    expect(joinChoices(ssePayloads(stream))).toEqual(drafted.choices);

    const [choice] = drafted.choices;
    const { tokens, text_offset: offsets, top_logprobs: top, token_logprobs: own } = choice!.logprobs!;
    // Whole characters only, as these texts have: what a token writes begins at its offset.
    for (const [i, token] of tokens.entries()) {
      if (offsets[i]! < choice!.text.length) {
        expect(choice!.text.slice(offsets[i], offsets[i]! + token.length)).toBe(
          token.slice(0, choice!.text.length - offsets[i]!),
        );
      }
      for (const logprob of Object.values(top[i] ?? {})) expect(logprob).toBeLessThanOrEqual(0);
    }
    if (fields.temperature === undefined && 'echo' in fields) {
      // The chosen token of a greedy answer is the most probable one.
      for (const [i, logprob] of own.entries()) {
        if (i >= drafted.usage.prompt_tokens) expect(Math.max(...Object.values(top[i]!))).toBe(logprob);
      }
    }
  });
});

test('drafts were accepted on the way', async () => {
  const { metrics } = await answer({ prompt: await promptOf(0), max_tokens: 32, temperature: 0, logprobs: 1 });
  expect(metrics.speculative_decoding!.num_accepted_draft_tokens).toBeGreaterThan(5);
});

test('an echoed prompt has the logprobs that its tokens had when they were chosen', async () => {
  const prompt = await promptOf(0);
  const chosen = await answer({ prompt, max_tokens: 12, temperature: 0, logprobs: 0, return_token_ids: true });
  const [first] = chosen.choices;
  const echoed = await answer({
    prompt: [...first!.prompt_token_ids!, ...first!.token_ids!],
    max_tokens: 0,
    echo: true,
    logprobs: 0,
  });
  const own = echoed.choices[0]!.logprobs!.token_logprobs.slice(-12);
  for (const [i, logprob] of own.entries()) expect(logprob).toBeCloseTo(first!.logprobs!.token_logprobs[i]!, 4);
});

test('texts and tokens are turned into each other', async () => {
  const prompt = await promptOf(3);
  const { tokens } = (await json('/tokenize', { prompt, add_special_tokens: false })) as { tokens: number[] };
  expect(await json('/detokenize', { tokens })).toEqual({ prompt });
});
