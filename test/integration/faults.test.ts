/** Faults inside ONNX Runtime and inside a cache, on real models: they end the requests they belong to, and nothing else. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GREEDY } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import type { PooledCache } from '../../src/model/kv-cache.ts';
import { IoBinding } from '../../src/onnx/io-binding.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { OnnxRuntimeError } from '../../src/onnx/onnx-runtime-error.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { openTestbed, testbedPrompts } from '../support/testbed-engine.ts';

const MAX_TOKENS = 40;
const temporary = new TemporaryFolder();
let opened: OpenedEngine;
/** Of the running requests, in order of their start. */
const caches: PooledCache[] = [];

beforeAll(async () => {
  opened = await openTestbed({ cacheDir: temporary.path, limits: { prefixCacheBytes: 0 } });
  const open = opened.target.openCache.bind(opened.target);
  opened.target.openCache = () => {
    const cache = open() as PooledCache;
    caches.push(cache);
    return cache;
  };
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

const prompts = testbedPrompts()
  .slice(0, 3)
  .map(({ messages }) => messages);

function request(messages: (typeof prompts)[number], drafter: string): GenerateRequest {
  const { engine } = opened;
  return {
    id: messages[0]!.content,
    promptTokens: engine.text.encode(engine.text.renderChat(messages), { addSpecialTokens: true }),
    sampling: GREEDY,
    maxTokens: MAX_TOKENS,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: true,
    skipSpecialTokens: true,
    drafter,
    draftTokens: null,
  };
}

async function ask(asked: GenerateRequest, onToken: () => void = () => undefined): Promise<TokenId[]> {
  const tokens: TokenId[] = [];
  for await (const event of opened.engine.generate(asked, new AbortController().signal)) {
    if (event.type === 'tokens') tokens.push(...event.tokens);
    onToken();
  }
  return tokens;
}

describe.each(['none', 'dflash'])('with drafter %s', (drafter) => {
  it('a cache with NaN ends its request alone, and the next to use its memory is as ever', async () => {
    const expected: TokenId[][] = [];
    for (const messages of prompts) expected.push(await ask(request(messages, drafter)));
    caches.length = 0;
    let poisoned = false;
    const answers = prompts.map((messages, i) =>
      ask(request(messages, drafter), () => {
        if (i !== 1 || poisoned) return;
        poisoned = true;
        for (const tensor of caches[1]!.tensors.values) tensor.data.fill(Number.NaN, 0, 64);
      }),
    );
    const [first, second, third] = await Promise.allSettled(answers);
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'internal', message: expect.stringContaining('NaN') } });
    expect([first, third]).toEqual([
      { status: 'fulfilled', value: expected[0] },
      { status: 'fulfilled', value: expected[2] },
    ]);
    expect(await Promise.all(prompts.map((messages) => ask(request(messages, drafter))))).toEqual(expected);
    expect(opened.engine.load()).toEqual({ running: 0, waiting: 0, cacheUsage: 0 });
  });

  it('a run that fails ends the requests of its step, and the engine goes on', async () => {
    const expected = await ask(request(prompts[0]!, drafter));
    const run = IoBinding.prototype.run;
    let runs = 0;
    IoBinding.prototype.run = async function (signal) {
      runs++;
      // The eleventh may be a draft's: then the sequences lose their drafter, and the step after it fails.
      if (runs === 11 || runs === 12) throw new OnnxRuntimeError('FAIL', 'a kernel failed');
      return run.call(this, signal);
    };
    try {
      const answers = await Promise.allSettled(prompts.map((messages) => ask(request(messages, drafter))));
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'onnx_runtime' } });
      }
    } finally {
      IoBinding.prototype.run = run;
    }
    expect(await ask(request(prompts[0]!, drafter))).toEqual(expected);
    expect(opened.engine.load()).toEqual({ running: 0, waiting: 0, cacheUsage: 0 });
  });
});
