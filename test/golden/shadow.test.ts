/** Shadow drafting with real models: taps, caches and prefixes are those of a server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TokensEvent } from '../../src/core/decode-event.ts';
import { GREEDY } from '../../src/core/sampling-params.ts';
import type { ScoredShadow } from '../../src/engine/engine.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { openTestbed, TESTBED_DRAFTER, testbedPrompts } from '../support/testbed-engine.ts';

const cacheDir = mkdtempSync(join(tmpdir(), 'blockdraft-shadow-'));
const scored: ScoredShadow[] = [];
let opened: OpenedEngine;

beforeAll(async () => {
  opened = await openTestbed({
    cacheDir,
    drafters: [`dflash=${TESTBED_DRAFTER}`, `twin=${TESTBED_DRAFTER}`, 'ngram'],
    shadow: { drafters: ['twin', 'ngram'], rate: 1 },
    observers: [{ onStart: () => undefined, onStep: ({ shadows }) => scored.push(...shadows), onFinish: () => undefined }],
  });
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  rmSync(cacheDir, { recursive: true });
});

it.each([
  ['greedily', GREEDY],
  ['when sampling', { ...GREEDY, temperature: 0.8, seed: 3n }],
])('a twin of the drafter that serves is scored as it is, round by round, and no token changes (%s)', async (_, sampling) => {
  const { engine } = opened;
  scored.length = 0;
  const answer = async (index: number, drafter: string | null) => {
    const tokens: number[] = [];
    const promptTokens = engine.text.encode(engine.text.renderChat(testbedPrompts()[index]!.messages), {
      addSpecialTokens: false,
    });
    const events = engine.generate(
      {
        id: `${index}-${drafter}`,
        promptTokens,
        sampling,
        maxTokens: 60,
        stopTokenIds: [],
        stopStrings: [],
        includeStopString: false,
        ignoreEos: true,
        skipSpecialTokens: true,
        drafter,
        draftTokens: drafter === 'none' ? 0 : null,
      },
      new AbortController().signal,
    );
    for await (const event of events) if (event.type === 'tokens') tokens.push(...(event as TokensEvent).tokens);
    return tokens;
  };
  const indices = [0, 1, 2, 3];
  const served = await Promise.all(indices.map((index) => answer(index, null)));
  expect(served).toEqual(await Promise.all(indices.map((index) => answer(index, 'none'))));

  const twins = scored.filter(({ shadow }) => shadow === 'twin');
  expect(twins.length).toBeGreaterThan(20);
  expect(twins.reduce((sum, { accepted }) => sum + accepted, 0)).toBeGreaterThan(10);
  for (const { drafted, evaluated, accepted, emitted, served: own } of twins) {
    expect({ drafted, evaluated, accepted, emitted }).toEqual(own);
  }
  expect(scored.some(({ shadow }) => shadow === 'ngram')).toBe(true);
});
