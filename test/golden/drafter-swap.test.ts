/** Drafters replaced while real models serve. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GREEDY } from '../../src/core/sampling-params.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { openTestbed, TESTBED_DRAFTER, testbedPrompts } from '../support/testbed-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'blockdraft-swap-'));
const drafterDir = join(root, 'drafters');
let opened: OpenedEngine;

beforeAll(async () => {
  cpSync(TESTBED_DRAFTER, join(drafterDir, 'next'), { recursive: true, dereference: true });
  cpSync(TESTBED_DRAFTER, join(drafterDir, 'other-taps'), { recursive: true, dereference: true });
  cpSync(TESTBED_DRAFTER, join(root, 'outside'), { recursive: true, dereference: true });
  symlinkSync(join(root, 'outside'), join(drafterDir, 'link'));
  const config = join(drafterDir, 'other-taps', 'config.json');
  const text = readFileSync(config, 'utf8');
  const changed = text.replace(/("target_layer_ids"\s*:\s*\[)\s*(\d+)/, (_, before, id) => `${before}${Number(id) + 1}`);
  expect(changed).not.toBe(text);
  writeFileSync(config, changed);
  opened = await openTestbed({ cacheDir: join(root, 'cache'), drafterDir });
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

async function serve(index: number) {
  const { engine } = opened;
  const promptTokens = engine.encode(engine.renderChat(testbedPrompts()[index]!.messages), { addSpecialTokens: false });
  const asked = {
    id: `${index}`,
    promptTokens,
    sampling: GREEDY,
    maxTokens: 60,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: true,
    skipSpecialTokens: true,
    drafter: null,
    draftTokens: null,
  };
  const tokens: number[] = [];
  for await (const event of engine.generate(asked, new AbortController().signal)) {
    if (event.type === 'tokens') tokens.push(...event.tokens);
    else return { tokens, rounds: event.speculation.rounds, error: event.speculation.drafterError };
  }
  throw new Error('no end');
}

it('a copy of the drafter takes its place under load: same tokens, same rounds, nobody dropped', async () => {
  const before = await Promise.all([0, 1, 2, 3].map(serve));
  const during = Promise.all([0, 1, 2, 3].map(serve));
  expect(await opened.engine.loadDrafter('dflash', 'next')).toMatchObject({ state: 'watching', path: 'next' });
  expect((await during).map(({ tokens }) => tokens)).toEqual(before.map(({ tokens }) => tokens));
  const after = await Promise.all([0, 1, 2, 3].map(serve));
  expect(after.map(({ tokens }) => tokens)).toEqual(before.map(({ tokens }) => tokens));
  expect(after.every(({ error, rounds }) => error === null && rounds.some(({ accepted }) => accepted > 0))).toBe(true);
  expect(opened.engine.drafterStatus()[0]?.swaps).toHaveLength(1);
});

it.each([
  ['other-taps', /taps some of the layers [\d, ]+.*got one that taps/],
  ['../outside', /inside the drafter folder/],
  ['link', /inside the drafter folder/],
  ['.', /inside the drafter folder/],
  ['missing', /inside the drafter folder/],
  ['next/config.json', /inside the drafter folder/],
])('refuses %s, and goes on as before', async (path, message) => {
  const swaps = opened.engine.drafterStatus()[0]!.swaps.length;
  await expect(opened.engine.loadDrafter('dflash', path)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(message),
  });
  expect(opened.engine.drafterStatus()[0]!.swaps).toHaveLength(swaps);
});
