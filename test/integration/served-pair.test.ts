/** The server as a person starts it, with the embedded pair, and a real OpenAI client. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { within } from '../support/labelled-timeout.ts';
import { type ReconcilableResponse, reconcileMetrics } from '../support/reconcile-metrics.ts';

const MODEL = 'smollm2-135m-instruct';
const ROOT = join(import.meta.dirname, '../..');
const START_MS = 120_000;

let server: ChildProcess;
let url = '';
let cacheDir = '';
let client: OpenAI;

beforeAll(async () => {
  cacheDir = mkdtempSync(join(tmpdir(), 'blockdraft-'));
  const flags = ['--port', '0', '--max-context', '1024', '--drafter', 'dflash', '--drafter', 'ngram', '--threads', '2'];
  server = spawn(process.execPath, [join(ROOT, 'bin/blockdraft.js'), 'serve', ...flags, '--cache-dir', cacheDir], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  url = await within(
    'the server starts',
    new Promise<string>((resolve, reject) => {
      const look = (chunk: Buffer) => {
        output += chunk.toString();
        const found = /listening\s+(http:\S+)/.exec(output);
        if (found) resolve(found[1] as string);
      };
      server.stdout?.on('data', look);
      server.stderr?.on('data', look);
      server.once('exit', (code) => reject(new Error(`The server ended with ${code}: ${output}`)));
    }),
    START_MS,
  );
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
}, START_MS);

afterAll(async () => {
  server.kill('SIGKILL');
  rmSync(cacheDir, { recursive: true, force: true });
});

const question = (drafter: string | null, sampled: boolean) => ({
  model: MODEL,
  messages: [{ role: 'user' as const, content: 'Write a short story about a fox who finds a lantern.' }],
  max_tokens: 40,
  ...(sampled ? { temperature: 0.9, top_p: 0.95, seed: 7 } : { temperature: 0 }),
  ...(drafter === null ? {} : { drafter }),
});

describe('the embedded pair, served', () => {
  it('is listed under its name', async () => {
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([MODEL]);
  });

  it.each([false, true])(
    'answers a chat with the same text from any drafter and none, whole and streamed (sampled: %s)',
    async (sampled) => {
      const texts: (string | null)[] = [];
      for (const drafter of [null, 'dflash', 'ngram', 'none']) {
        const whole = await client.chat.completions.create(question(drafter, sampled));
        texts.push(whole.choices[0]?.message.content ?? null);
        let streamed = '';
        for await (const chunk of await client.chat.completions.create({ ...question(drafter, sampled), stream: true })) {
          streamed += chunk.choices[0]?.delta.content ?? '';
        }
        texts.push(streamed);
      }
      expect(texts[0]).toMatch(/\w+ \w+/);
      expect(new Set(texts).size).toBe(1);
    },
  );

  it('completes a text, whole and streamed', async () => {
    const body = { model: MODEL, prompt: 'The capital of France is', max_tokens: 12, temperature: 0 };
    const whole = await client.completions.create(body);
    let streamed = '';
    for await (const chunk of await client.completions.create({ ...body, stream: true }))
      streamed += chunk.choices[0]?.text ?? '';
    expect(whole.choices[0]?.text).toContain('Paris');
    expect(streamed).toBe(whole.choices[0]?.text);
    expect(whole.usage?.completion_tokens).toBe(12);
  });

  it('says in each answer how its drafts fared, and in its counters the same', async () => {
    const scrape = async () => (await fetch(`${url}/metrics`)).text();
    const before = await scrape();
    const responses = await Promise.all(
      ['What is gravity?', 'List five fruits.', 'Repeat: one two three four five six seven.'].map(async (content, i) => {
        const body = { ...question(i === 2 ? 'ngram' : null, false), messages: [{ role: 'user', content }] };
        const response = await fetch(`${url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        expect(response.status).toBe(200);
        return (await response.json()) as ReconcilableResponse;
      }),
    );
    const drafted = responses.map(({ metrics }) => metrics.speculative_decoding?.num_draft_tokens ?? 0);
    expect(drafted.reduce((a, b) => a + b, 0)).toBeGreaterThan(0);
    expect(reconcileMetrics(before, await scrape(), responses)).toEqual([]);
  });

  it('refuses what it cannot do, by name', async () => {
    await expect(client.chat.completions.create({ ...question('magic', false) })).rejects.toMatchObject({
      status: 400,
      param: 'drafter',
    });
    await expect(client.chat.completions.create({ ...question(null, false), model: 'other' })).rejects.toMatchObject({
      status: 404,
    });
  });

  it('ends cleanly on SIGTERM', async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    expect(await within('the server ends', ended, 20_000)).toBe(0);
  });
});
