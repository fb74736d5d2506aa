/** What the pair in the repository answers must not depend on the drafter, nor on who else is served. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { statisticsOfRecords } from '../../src/core/acceptance-statistics.ts';
import type { SamplingParams } from '../../src/core/sampling-params.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { type Answer, ask, askAll, openEmbedded, type Question, toRequest } from '../support/embedded-pair.ts';
import { eventLoopUtilization } from '../support/event-loop.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { PROMPT_KINDS, PROMPTS } from '../support/prompts.ts';

const DRAFTERS = ['none', 'dflash', 'ngram'] as const;
type DrafterName = (typeof DRAFTERS)[number];

const GREEDY_QUESTIONS: readonly Question[] = PROMPTS.map(({ text }) => ({ prompt: text, maxTokens: 40 }));

const SAMPLERS: readonly Omit<SamplingParams, 'seed'>[] = [
  { temperature: 0.8, topP: 0.95, topK: 0, minP: 0 },
  { temperature: 0.8, topP: 1, topK: 40, minP: 0 },
  { temperature: 0.8, topP: 1, topK: 0, minP: 0.05 },
  { temperature: 1.2, topP: 0.9, topK: 50, minP: 0.02 },
];
/** Every second prompt, the samplers in turn. */
const SAMPLED_QUESTIONS: readonly Question[] = PROMPTS.filter((_, i) => i % 2 === 0).map(({ text }, i) => ({
  prompt: text,
  maxTokens: 24,
  sampling: { ...SAMPLERS[i % SAMPLERS.length]!, seed: BigInt(1000 + i) },
}));

const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

interface Answers {
  readonly greedy: readonly Answer[];
  readonly sampled: readonly Answer[];
  /** A few of the questions again, one after the other. */
  readonly alone: readonly Answer[];
}
const ALONE = [2, 13, 26];

describe.each(['int8', 'f32'] as const)('in %s', (weights) => {
  const answers = new Map<DrafterName, Answers>();

  describe.each(DRAFTERS)('with the drafter %s', (drafter) => {
    let opened: OpenedEngine;

    beforeAll(async () => {
      opened = await openEmbedded({ drafter, weights, cacheDir: temporary.path });
    });

    afterAll(async () => {
      await opened.engine[Symbol.asyncDispose]();
      expect(liveObjects()).toEqual({});
    });

    it('answers', async () => {
      const { engine } = opened;
      // Long and short, greedy and sampled ones share the steps.
      const together = await askAll(engine, [...GREEDY_QUESTIONS, ...SAMPLED_QUESTIONS]);
      const alone: Answer[] = [];
      for (const index of ALONE) alone.push(await ask(engine, GREEDY_QUESTIONS[index]!));
      const greedy = together.slice(0, GREEDY_QUESTIONS.length);
      answers.set(drafter, { greedy, sampled: together.slice(GREEDY_QUESTIONS.length), alone });
      for (const { tokens, finish } of together) {
        expect(finish.completionTokens).toBe(tokens.length);
        expect(finish.speculation.drafterError).toBeNull();
        expect(['stop', 'length']).toContain(finish.reason);
      }
      const drafted = statisticsOfRecords(greedy.map(({ finish }) => finish.speculation));
      expect(drafted.numDrafts > 0).toBe(drafter !== 'none');
    });

    it('leaves the event loop free while it decodes', async () => {
      const { engine } = opened;
      const decoding = new AbortController();
      const endless = [...GREEDY_QUESTIONS.slice(0, 2), ...SAMPLED_QUESTIONS.slice(0, 2)].map(async (question) => {
        const request = { ...toRequest(engine, question), maxTokens: null, ignoreEos: true };
        for await (const event of engine.generate(request, decoding.signal)) if (event.type === 'finish') return event;
        return null;
      });
      await sleep(300);
      const utilization = await eventLoopUtilization(1500);
      expect(engine.load().running).toBe(4);
      decoding.abort();
      for (const finish of await Promise.all(endless)) expect(finish?.reason).toBe('aborted');
      expect(utilization).toBeLessThan(0.85);
    });

    it('frees the sequences of requests that were aborted', async () => {
      const { engine } = opened;
      const abort = new AbortController();
      const abandoned = GREEDY_QUESTIONS.slice(0, engine.info.maxSequences).map(async (question) => {
        const request = { ...toRequest(engine, question), maxTokens: null, ignoreEos: true };
        let tokens = 0;
        for await (const event of engine.generate(request, abort.signal)) {
          if (event.type === 'tokens') tokens += event.tokens.length;
          else return { ...event, tokens };
        }
        throw new Error('The answer has no end');
      });
      await vi.waitFor(() => expect(engine.load().running).toBe(engine.info.maxSequences), 5000);
      await sleep(200);
      abort.abort();
      for (const finish of await Promise.all(abandoned)) {
        expect(finish.reason).toBe('aborted');
        expect(finish.completionTokens).toBe(finish.tokens);
      }
      expect(engine.load()).toMatchObject({ running: 0, waiting: 0, cacheUsage: 0 });
      // Each slot serves again, and knows nothing of who was there before.
      const again = await askAll(
        engine,
        GREEDY_QUESTIONS.slice(0, engine.info.maxSequences).map((q) => ({ ...q, maxTokens: 12 })),
      );
      const before = answers.get(drafter)!.greedy;
      for (const [i, { tokens }] of again.entries()) expect(tokens).toEqual(before[i]!.tokens.slice(0, 12));
    });
  });

  describe('whatever the drafter', () => {
    const plain = () => answers.get('none')!;

    it.each(DRAFTERS)('answers one at a time as in company (%s)', (drafter) => {
      const { greedy, alone } = answers.get(drafter)!;
      expect(alone.map(({ tokens }) => tokens)).toEqual(ALONE.map((index) => greedy[index]!.tokens));
    });

    it.each(['dflash', 'ngram'] as const)('gives the same greedy ids with %s as without', (drafter) => {
      for (const [i, { kind, text }] of PROMPTS.entries()) {
        expect(answers.get(drafter)!.greedy[i]!.tokens, `${kind}: ${text}`).toEqual(plain().greedy[i]!.tokens);
      }
    });

    it.each(['dflash', 'ngram'] as const)('gives the same sampled text with %s as without', (drafter) => {
      for (const [i, { prompt }] of SAMPLED_QUESTIONS.entries()) {
        expect(answers.get(drafter)!.sampled[i]!.text, prompt).toBe(plain().sampled[i]!.text);
      }
    });

    it('answers at length, and differently to each prompt', () => {
      const texts = plain().greedy.map(({ text }) => text);
      expect(new Set(texts).size).toBe(PROMPTS.length);
      const tokens = plain().greedy.reduce((sum, answer) => sum + answer.tokens.length, 0);
      expect(tokens / PROMPTS.length).toBeGreaterThan(25);
      // Sampling does sample.
      const greedyAgain = SAMPLED_QUESTIONS.filter(({ prompt }, i) => {
        const greedy = plain().greedy[PROMPTS.findIndex(({ text }) => text === prompt)]!;
        return greedy.text.startsWith(plain().sampled[i]!.text);
      });
      expect(greedyAgain.length).toBeLessThan(SAMPLED_QUESTIONS.length / 2);
    });

    it('saves steps with dflash for every kind of prompt', () => {
      for (const kind of PROMPT_KINDS) {
        const records = PROMPTS.flatMap((prompt, i) =>
          prompt.kind === kind ? [answers.get('dflash')!.greedy[i]!.finish.speculation] : [],
        );
        expect(statisticsOfRecords(records).meanAcceptanceLength, kind).toBeGreaterThan(1.1);
      }
    });
  });
});
