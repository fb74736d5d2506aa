/** Reused beginnings on real models: neither a token nor a round may differ, with any drafter. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GREEDY, type SamplingParams } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { openTestbed, testbedPrompts } from '../support/testbed-engine.ts';

const MAX_TOKENS = 48;
const SAMPLED: SamplingParams = { ...GREEDY, temperature: 0.8, topP: 0.95, seed: 11n };
const temporary = new TemporaryFolder();
const prompts = testbedPrompts().filter((_, i) => i % 8 === 0);
let without: OpenedEngine;
let reusing: OpenedEngine;

beforeAll(async () => {
  without = await openTestbed({ cacheDir: temporary.path, limits: { prefixCacheBytes: 0 } });
  reusing = await openTestbed({ cacheDir: temporary.path });
});

afterAll(async () => {
  await reusing.engine[Symbol.asyncDispose]();
  await without.engine[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

let requests = 0;
function request(promptTokens: readonly TokenId[], drafter: string, sampling: SamplingParams): GenerateRequest {
  return {
    id: `request-${requests++}`,
    promptTokens,
    sampling,
    maxTokens: MAX_TOKENS,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: false,
    skipSpecialTokens: true,
    drafter,
    draftTokens: null,
    cacheSalt: drafter,
  };
}

async function ask({ engine }: OpenedEngine, asked: GenerateRequest) {
  const tokens: TokenId[] = [];
  for await (const event of engine.generate(asked, new AbortController().signal)) {
    if (event.type === 'tokens') tokens.push(...event.tokens);
    else return { tokens, rounds: event.speculation.rounds, cachedTokens: event.cachedTokens };
  }
  throw new Error('The answer has no end');
}

describe.each(['dflash', 'ngram', 'none'])('a chat that goes on, with %s', (drafter) => {
  it.each([
    ['greedily', GREEDY],
    ['sampled', SAMPLED],
  ])('is answered the same with what was computed before, in the same rounds (%s)', async (_, sampling) => {
    let cached = 0;
    let accepted = 0;
    for (const { messages } of prompts) {
      const turns = [...messages];
      for (let turn = 0; turn < 3; turn++) {
        const text = without.engine.text.renderChat(turns);
        const promptTokens = without.engine.text.encode(text, { addSpecialTokens: true });
        const expected = await ask(without, request(promptTokens, drafter, sampling));
        const actual = await ask(reusing, request(promptTokens, drafter, sampling));
        expect(actual.tokens).toEqual(expected.tokens);
        expect(actual.rounds).toEqual(expected.rounds);
        expect(expected.cachedTokens).toBe(0);
        expect(actual.cachedTokens).toBeLessThan(promptTokens.length);
        if (turn > 0) expect(actual.cachedTokens).toBeGreaterThan(0);
        cached += actual.cachedTokens;
        accepted += actual.rounds.reduce((sum, round) => sum + round.accepted, 0);
        turns.push({ role: 'assistant', content: `Answer ${turn}.` }, messages[0]!);
      }
    }
    expect(cached).toBeGreaterThan(500);
    if (drafter === 'dflash') expect(accepted).toBeGreaterThan(100);
  });
});
