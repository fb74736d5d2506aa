/** Prompts that begin alike on a hybrid: states kept within prompts change neither a token nor a round. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { FIXED_LENGTH } from '../../src/decode/draft-length/fixed-length.ts';
import { DecodeEngine } from '../../src/engine/decode-engine.ts';
import { DEFAULT_ENGINE_LIMITS } from '../../src/engine/engine-limits.ts';
import { SNAPSHOT_POSITIONS } from '../../src/engine/prefix-cache.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { ChatTemplate } from '../../src/text/chat-template.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { answerOf, NEVER, request, TOKENIZER } from '../unit/engine/engine-fixture.ts';
import { DflashPair, IN_F32 } from './open-dflash.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const LAYERS = 8;
const VOCAB = 256;
const temporary = new TemporaryFolder();
const folder = join(temporary.path, 'drafter');
let kept: DecodeEngine;
let plain: DecodeEngine;

async function open(prefixCacheBytes: number): Promise<DecodeEngine> {
  const { target, drafter } = await DflashPair.open(folder, join(FIXTURES, 'qwen3_5-nested'), temporary, {
    ...IN_F32,
    maxCaches: 20,
  });
  return new DecodeEngine({
    target,
    drafters: [{ name: 'dflash', drafter, draftTokens: drafter.maxDraftTokens, lengths: FIXED_LENGTH }],
    tokenizer: TOKENIZER,
    chatTemplate: new ChatTemplate({ templates: new Map(), specialTokens: {} }),
    model: 'hybrid',
    samplingDefaults: {},
    maxWaiting: 16,
    limits: { ...DEFAULT_ENGINE_LIMITS, prefixCacheBytes },
    observers: [],
  });
}

beforeAll(async () => {
  // The fixture's drafter has the target's sizes but for its depth; what it was trained for does not matter here.
  cpSync(join(FIXTURES, 'dflash-trained'), folder, { recursive: true });
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, num_target_layers: LAYERS }));
  kept = await open(1e8);
  plain = await open(0);
});

afterAll(async () => {
  await kept[Symbol.asyncDispose]();
  await plain[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

const text = (length: number, start: number): TokenId[] => Array.from({ length }, (_, i) => (start + i * 7) % VOCAB);

async function ask(prompt: readonly TokenId[], drafter: string | null) {
  const asked = () => request(prompt, { maxTokens: 24, ignoreEos: true, drafter });
  const expected = await answerOf(plain.generate(asked(), NEVER));
  const actual = await answerOf(kept.generate(asked(), NEVER));
  expect(actual.tokens).toEqual(expected.tokens);
  expect(actual.finish.speculation.rounds).toEqual(expected.finish.speculation.rounds);
  expect(actual.finish.speculation.drafterError).toBeNull();
  expect(expected.finish.cachedTokens).toBe(0);
  return { tokens: actual.tokens, cached: actual.finish.cachedTokens };
}

it.each([
  ['dflash', null],
  ['none', 'none'],
])('a prompt that parts from an earlier one begins with what was kept within that, with %s', async (name, drafter) => {
  const system = text(2 * SNAPSHOT_POSITIONS + 40, name.length);
  const first = [...system, ...text(30, 5)];
  const answer = await ask(first, drafter);
  expect(answer.cached).toBe(0);
  expect((await ask([...system, ...text(50, 11)], drafter)).cached).toBe(2 * SNAPSHOT_POSITIONS);
  expect((await ask([...system.slice(0, 300), ...text(50, 13)], drafter)).cached).toBe(SNAPSHOT_POSITIONS);
  // A chat that goes on takes over what the sequence left behind, and the kept states stay for others.
  const chat = [...first, ...answer.tokens, ...text(9, 17)];
  expect((await ask(chat, drafter)).cached).toBe(first.length + answer.tokens.length - 1);
  expect((await ask([...system, ...text(20, 19)], drafter)).cached).toBe(2 * SNAPSHOT_POSITIONS);
});

it('several answers to one prompt compute what can be kept of it once', async () => {
  const prompt = text(SNAPSHOT_POSITIONS + 100, 77);
  const asked = () => request(prompt, { maxTokens: 12, ignoreEos: true });
  const expected = await answerOf(plain.generate(asked(), NEVER));
  const answers = await Promise.all([0, 1, 2].map(() => answerOf(kept.generate(asked(), NEVER))));
  expect(answers.map(({ finish }) => finish.cachedTokens)).toEqual([0, SNAPSHOT_POSITIONS, SNAPSHOT_POSITIONS]);
  for (const { tokens } of answers) expect(tokens).toEqual(expected.tokens);
});
