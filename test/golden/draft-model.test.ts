/** Models as drafters: one for itself, which is always right, and one for a stranger, which hardly ever is. */

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { DraftModelDrafter } from '../../src/drafter/draft-model/draft-model-drafter.ts';
import type { Drafter } from '../../src/drafter/drafter.ts';
import { drafterFromName } from '../../src/drafter/registry.ts';
import { borrowTarget } from '../../src/engine/borrow-target.ts';
import { loadDraftDecoder } from '../../src/engine/load-draft-decoder.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { CPU } from '../../src/onnx/device.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { LoadedTarget } from '../../src/target/load-target.ts';
import type { Target } from '../../src/target/target.ts';
import { loadChatTemplate } from '../../src/text/chat-template.ts';
import { loadTokenizer } from '../../src/text/tokenizer.ts';
import { describeDrafterContract } from '../contract/drafter-contract.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { testRuntime } from '../support/runtime.ts';
import { greedyAnswer, openTestbed, testbedPrompts } from '../support/testbed-engine.ts';
import expected from './fixtures/testbed/expected.json' with { type: 'json' };
import { speculateAll } from './speculate.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const TESTBED = join(FIXTURES, 'testbed', 'target');
const temporary = new TemporaryFolder();

function loadDecoder(folder: string, maxContext: number) {
  const common = { runtime: testRuntime(), device: CPU, format: 'f32', cacheDir: temporary.path } as const;
  return loadDraftDecoder({ ...common, folder, maxContext, maxSequences: 4, maxRows: 64 });
}

/** The target's greedy answer, a token a step. */
async function oneByOne(target: Target, prompt: readonly TokenId[], count: number): Promise<TokenId[]> {
  using cache = target.openCache();
  const answer: TokenId[] = [];
  for (let tokens = prompt; answer.length < count; tokens = answer.slice(-1)) {
    const result = await target.step([{ cache, tokens, logitsFrom: tokens.length - 1 }]);
    answer.push(result.greedy(0, tokens.length - 1));
  }
  return answer;
}

/** As the server makes it: from the name of a folder. */
async function openDrafter(folder: string, loaded: LoadedTarget): Promise<Drafter> {
  const source = drafterFromName(folder, loaded.checkpoint.folder);
  return source!.load({
    runtime: testRuntime(),
    device: CPU,
    format: 'f32',
    cacheDir: temporary.path,
    target: borrowTarget(loaded),
    loadDecoder: (decoderFolder) => loadDecoder(decoderFolder, loaded.target.facts.maxContext),
  });
}

afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

describe('a model that drafts for itself', () => {
  let loaded: LoadedTarget;
  let drafter: Drafter;
  const prompts: (readonly TokenId[])[] = [];

  beforeAll(async () => {
    loaded = await loadTestTarget({ folder: TESTBED, cacheDir: temporary.path });
    drafter = await openDrafter(TESTBED, loaded);
    const [tokenizer, template] = await Promise.all([loadTokenizer(TESTBED), loadChatTemplate(TESTBED)]);
    const lines = readFileSync(join(FIXTURES, 'testbed', 'prompts.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .slice(0, 10);
    for (const line of lines) {
      const { messages } = JSON.parse(line);
      prompts.push(tokenizer.encode(template.render(messages, { addGenerationPrompt: true }), { addSpecialTokens: true }));
    }
  });

  afterAll(async () => {
    await drafter[Symbol.asyncDispose]();
    await loaded.target[Symbol.asyncDispose]();
  });

  it('is accepted whole, several sequences at once, and changes no token', async () => {
    const limits = { maxTokens: 64, stopTokens: expected.stop_ids, draftPastEnd: 0 };
    const runs = await speculateAll(loaded.target, drafter, prompts, limits);
    for (const [i, { output, rounds }] of runs.entries()) {
      const plain = await oneByOne(loaded.target, prompts[i]!, 64);
      const end = plain.findIndex((token) => expected.stop_ids.includes(token));
      expect(output, `prompt ${i}`).toEqual(end < 0 ? plain : plain.slice(0, end + 1));
      for (const { evaluated, accepted } of rounds) expect(accepted).toBe(evaluated);
      expect(rounds[0]!.accepted).toBe(drafter.maxDraftTokens);
    }
  });
});

describe('a sequence that begins with what is known', () => {
  const open = (prefixCacheBytes: number) =>
    openTestbed({ cacheDir: temporary.path, drafters: [`draft-model=${TESTBED}`], limits: { prefixCacheBytes } });
  const answer = (opened: OpenedEngine, index: number, again: string) =>
    greedyAnswer(opened, testbedPrompts()[index]!, { maxTokens: 24, behind: again });

  it('gets the drafts that it would get without, also when more were kept than there is room for', async () => {
    const [kept, fresh] = [await open(2 ** 28), await open(0)];
    const indices = Array.from({ length: 40 }, (_, i) => i);
    await Promise.all(indices.map((index) => answer(kept, index, '')));
    for (const index of indices.slice(-3)) {
      for (const again of ['', 'Well,']) {
        const [hit, miss] = [await answer(kept, index, again), await answer(fresh, index, again)];
        expect(hit.cachedTokens).toBeGreaterThanOrEqual(16);
        expect(miss.cachedTokens).toBe(0);
        expect(hit.tokens).toEqual(miss.tokens);
        expect(hit.speculation).toEqual(miss.speculation);
        expect(hit.speculation.rounds[0]!.accepted).toBe(7);
      }
    }
    for (const { engine } of [kept, fresh]) await engine[Symbol.asyncDispose]();
  });
});

describe('a model that drafts for another', () => {
  it('changes no token, however little is accepted', async () => {
    const { target } = await loadTestTarget({ folder: join(FIXTURES, 'dflash-target'), cacheDir: temporary.path });
    const decoder = await loadDecoder(join(FIXTURES, 'llama-tied'), target.facts.maxContext);
    await using drafter = new DraftModelDrafter(decoder, 3);
    const prompts = [[48], [96, 101, 5, 116, 147, 35, 143], [7, 7, 7, 8, 9]];
    const runs = await speculateAll(target, drafter, prompts, { maxTokens: 40, stopTokens: [], draftPastEnd: 0 });
    for (const [i, { output, rounds }] of runs.entries()) {
      expect(output).toEqual(await oneByOne(target, prompts[i]!, 40));
      expect(rounds.reduce((sum, { drafted }) => sum + drafted, 0)).toBeGreaterThan(30);
      expect(rounds.reduce((sum, { accepted }) => sum + accepted, 0)).toBeLessThan(10);
    }
    await target[Symbol.asyncDispose]();
  });
});

describeDrafterContract({
  name: 'draft-model on a graph',
  async open() {
    const { target } = await loadTestTarget({ folder: join(FIXTURES, 'dflash-target'), cacheDir: temporary.path, maxRows: 64 });
    return { drafter: new DraftModelDrafter(await loadDecoder(join(FIXTURES, 'qwen2-bias'), target.facts.maxContext)), target };
  },
});

describe('a draft model is refused', () => {
  let loaded: LoadedTarget;

  beforeAll(async () => {
    loaded = await loadTestTarget({ folder: TESTBED, cacheDir: temporary.path });
  });

  afterAll(async () => {
    await loaded.target[Symbol.asyncDispose]();
  });

  it('for a vocabulary of another size, naming both', async () => {
    await expect(openDrafter(join(FIXTURES, 'llama-tied'), loaded)).rejects.toMatchObject({
      code: 'incompatible_drafter',
      message: expect.stringMatching(/vocab_size is 272, the target's is 1024/),
    });
  });

  it('for other tokens of the same number, naming the first', async () => {
    const folder = join(temporary.path, 'other-tokens');
    await cp(TESTBED, folder, { recursive: true });
    const file = join(folder, 'tokenizer.json');
    const tokenizer = JSON.parse(readFileSync(file, 'utf8'));
    const [[first, id]] = Object.entries(tokenizer.model.vocab) as [[string, number]];
    delete tokenizer.model.vocab[first];
    tokenizer.model.vocab['§other'] = id;
    writeFileSync(file, JSON.stringify(tokenizer));
    await expect(openDrafter(folder, loaded)).rejects.toMatchObject({
      code: 'incompatible_drafter',
      message: expect.stringMatching(new RegExp(`token ${id} of its tokenizer is "§other", of the target's`)),
    });
  });

  it('for a state that cannot be cut back', async () => {
    const hybrid = join(FIXTURES, 'qwen3_5-text');
    const target = await loadTestTarget({ folder: join(FIXTURES, 'dflash-target'), cacheDir: temporary.path });
    const folder = join(temporary.path, 'hybrid');
    await cp(hybrid, folder, { recursive: true });
    const other = join(temporary.path, 'plain');
    await cp(join(FIXTURES, 'dflash-target'), other, { recursive: true });
    for (const to of [folder, other]) copyFileSync(join(TESTBED, 'tokenizer.json'), join(to, 'tokenizer.json'));
    const withTokenizer = { ...target, checkpoint: { ...target.checkpoint, folder: other } };
    await expect(openDrafter(folder, withTokenizer)).rejects.toMatchObject({
      code: 'incompatible_drafter',
      message: expect.stringMatching(/recurrent state/),
    });
    await target.target[Symbol.asyncDispose]();
  });
});
