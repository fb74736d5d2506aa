/** Drafters replaced while real models serve. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { folderBytes } from '../../src/checkpoint/folder-bytes.ts';
import { watchDrafter } from '../../src/cli/watch-drafter.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { until } from '../support/labelled-timeout.ts';
import { greedyAnswer, openTestbed, TESTBED_DRAFTER, testbedPrompts } from '../support/testbed-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'blockdraft-swap-'));
const drafterDir = join(root, 'drafters');
const run = join(root, 'run');
const failures: string[][] = [];
let opened: OpenedEngine;

beforeAll(async () => {
  cpSync(TESTBED_DRAFTER, join(drafterDir, 'next'), { recursive: true, dereference: true });
  cpSync(TESTBED_DRAFTER, join(drafterDir, 'other-taps'), { recursive: true, dereference: true });
  cpSync(TESTBED_DRAFTER, join(root, 'outside'), { recursive: true, dereference: true });
  cpSync(TESTBED_DRAFTER, join(drafterDir, 'larger'), { recursive: true, dereference: true });
  enlarge(join(drafterDir, 'larger', 'model.safetensors'));
  symlinkSync(join(root, 'outside'), join(drafterDir, 'link'));
  const config = join(drafterDir, 'other-taps', 'config.json');
  const text = readFileSync(config, 'utf8');
  const changed = text.replace(/("target_layer_ids"\s*:\s*\[)\s*(\d+)/, (_, before, id) => `${before}${Number(id) + 1}`);
  expect(changed).not.toBe(text);
  writeFileSync(config, changed);
  mkdirSync(run);
  opened = await openTestbed({
    cacheDir: join(root, 'cache'),
    drafterDirs: [drafterDir, run],
    observers: [
      {
        onStart: () => undefined,
        onStep: () => undefined,
        onFinish: () => undefined,
        onSwapFailure: (...failure) => failures.push(failure),
      },
    ],
  });
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

/** Adds a tensor that nothing uses. */
function enlarge(file: string): void {
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + length));
  const end = bytes.length - 8 - length;
  const text = Buffer.from(JSON.stringify({ ...header, more: { dtype: 'F32', shape: [1], data_offsets: [end, end + 4] } }));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(file, Buffer.concat([size, text, bytes.subarray(8 + length), Buffer.alloc(4)]));
}

async function serve(index: number) {
  const { tokens, speculation } = await greedyAnswer(opened, testbedPrompts()[index]!, { maxTokens: 60 });
  return { tokens, rounds: speculation.rounds, error: speculation.drafterError };
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

it('leaves room for a second drafter from the start on, and for none that takes more than caches leave', async () => {
  const { cacheBytes } = opened.summary;
  const bytes = await folderBytes(TESTBED_DRAFTER, 'f32');
  const available = vi.spyOn(process, 'availableMemory').mockReturnValue(cacheBytes + bytes - 1);
  onTestFinished(() => available.mockRestore());
  const options = {
    cacheDir: join(root, 'cache'),
    drafterDirs: [drafterDir],
    limits: { kvCacheBytes: cacheBytes, prefixCacheBytes: 0 },
  };
  await expect(openTestbed(options)).rejects.toMatchObject({ code: 'invalid_config' });
  available.mockReturnValue(cacheBytes + bytes);
  const { engine } = await openTestbed(options);
  try {
    await expect(engine.loadDrafter('dflash', 'larger')).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(`at most ${bytes} bytes`),
    });
    expect(engine.drafterStatus()[0]?.swaps).toEqual([]);
    expect(await engine.loadDrafter('dflash', 'next')).toMatchObject({ state: 'watching' });
  } finally {
    await engine[Symbol.asyncDispose]();
  }
});

it('a checkpoint that is written into a watched folder serves; one with other taps is told and passed over', async () => {
  const { engine } = opened;
  const stop = new AbortController();
  const current = () => engine.drafterStatus()[0]!;
  failures.length = 0;
  // The swap of the first test is undecided, and checkpoints would wait for its end.
  const decided = {
    drafterStatus: () => engine.drafterStatus().map((status) => ({ ...status, swaps: [] })),
    loadDrafter: engine.loadDrafter.bind(engine),
  };
  const logger = { warn: () => undefined };
  const watching = watchDrafter({ engine: decided, name: 'dflash', folder: run, pollMs: 10, signal: stop.signal, logger });
  cpSync(join(drafterDir, 'other-taps'), join(run, 'step-1'), { recursive: true });
  await until('the failure is told', () => failures.length > 0, 20_000);
  expect(failures).toEqual([['dflash', expect.stringMatching(/run\/step-1$/), expect.stringMatching(/got one that taps/)]]);
  cpSync(join(drafterDir, 'next'), join(run, 'step-2'), { recursive: true });
  await until('the checkpoint is loaded', () => /step-2$/.test(current().folder ?? ''), 20_000);
  stop.abort();
  await watching;
  expect(current().swaps.at(-1)).toMatchObject({ state: 'watching', path: expect.stringMatching(/run\/step-2$/) });
  expect((await serve(0)).error).toBeNull();
  expect(failures).toHaveLength(1);
});
