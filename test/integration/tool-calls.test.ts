/** Tool calls by a real model: small as it is, a structure lets it write nothing but calls, with and without speculation. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { createApp } from '../../src/server/app.ts';
import { EMBEDDED_TARGET, openEmbedded } from '../support/embedded-pair.ts';
import { ssePayloads } from '../support/read-sse.ts';
import { createServerFixture } from '../support/server-fixture.ts';
import { post, type TestApp } from '../support/server-requests.ts';
import { streamFacts } from '../support/stream-facts.ts';

const QWEN3_TEMPLATE = join(import.meta.dirname, '../golden/fixtures/tokenizer-qwen3/chat_template.jinja');
const PATH = '/v1/chat/completions';
const WEATHER = {
  type: 'object',
  properties: { place: { enum: ['Rome', 'Oslo'] }, days: { type: 'integer', minimum: 1, maximum: 7 } },
  required: ['place'],
  additionalProperties: false,
};
const ASKED = {
  messages: [{ role: 'user', content: 'How is the weather in Oslo?' }],
  tools: [
    { type: 'function', function: { name: 'weather', parameters: WEATHER } },
    { type: 'function', function: { name: 'now' } },
  ],
  temperature: 0,
  max_tokens: 120,
};

interface Answer {
  readonly choices: readonly {
    readonly finish_reason: string;
    readonly message: {
      readonly content: string | null;
      readonly tool_calls: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
    };
  }[];
  readonly metrics: { readonly speculative_decoding: { readonly num_accepted_draft_tokens: number } };
}

let folder: string;
let opened: OpenedEngine;
let app: TestApp;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'blockdraft-'));
  const target = join(folder, 'target');
  mkdirSync(target);
  for (const name of readdirSync(EMBEDDED_TARGET)) symlinkSync(join(EMBEDDED_TARGET, name), join(target, name));
  // The model's own template does not show tools.
  cpSync(QWEN3_TEMPLATE, join(target, 'chat_template.jinja'));
  opened = await openEmbedded({ target, drafter: 'dflash', weights: 'int8', cacheDir: join(folder, 'cache') });
  app = createApp({ ...createServerFixture().options, status: () => ({ state: 'ready', engine: opened.engine }) });
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function ask(fields: object): Promise<Answer> {
  const response = await post(app, PATH, { ...ASKED, ...fields });
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

test.each([
  ['required', 'required', true],
  ['a named one', { type: 'function', function: { name: 'weather' } }, true],
  ['the one that JSON leaves room for', 'auto', false],
])('makes calls of tools: %s', async (_, choice, isForced) => {
  const fields = { tool_choice: choice, ...(isForced ? {} : { response_format: { type: 'json_object' } }) };
  const drafted = await ask(fields);
  const plain = await ask({ ...fields, speculative: false });
  const stream = ssePayloads(await (await post(app, PATH, { ...ASKED, ...fields, stream: true })).text());
  const { finish_reason: reason, message } = drafted.choices[0]!;
  expect(reason).toBe('tool_calls');
  expect(message.content).toBeNull();
  const calls = message.tool_calls.map((call) => call.function);
  for (const { name, arguments: text } of calls) {
    const made = JSON.parse(text) as { readonly place?: string; readonly days?: number };
    if (name === 'now') expect(made).toEqual({});
    else expect([name, made.place === 'Rome' || made.place === 'Oslo']).toEqual(['weather', true]);
    expect(made.days ?? 1).toBeGreaterThanOrEqual(1);
    expect(made.days ?? 1).toBeLessThanOrEqual(7);
  }
  expect(plain.choices[0]!.message.tool_calls.map((call) => call.function)).toEqual(calls);
  expect(streamFacts(stream).calls).toEqual(calls);
  expect(drafted.metrics.speculative_decoding.num_accepted_draft_tokens).toBeGreaterThan(0);
});
