import { describe, expect, it } from 'vitest';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { answerOf, NEVER, openEngine, oracle, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 5, memory: 6 });
const limits = { prefixCacheBytes: 1e6 };
const LIMIT = { maxTokens: 20, ignoreEos: true };
const prompt = (length: number, start = 0) => Array.from({ length }, (_, i) => (start + i * 7) % VOCAB);

describe('a prompt that begins like an earlier sequence', () => {
  it.each([
    { name: 'no drafter', drafter: () => null },
    { name: 'ngram', drafter: () => new NgramDrafter() },
    { name: 'a drafter that knows all', drafter: () => oracle(nextLogits) },
  ])('is answered as without reuse, with the same rounds ($name)', async ({ drafter }) => {
    const asked = () => [
      request(prompt(60), LIMIT),
      request(prompt(60), LIMIT),
      request([...prompt(40), 3, 1, 4], LIMIT),
      request(prompt(80), LIMIT),
    ];
    const run = async (bytes: number) => {
      const { engine, recorder } = openEngine({
        nextLogits,
        drafter: drafter(),
        maxCaches: 40,
        cacheBytesPerPosition: 1,
        limits: { prefixCacheBytes: bytes },
      });
      const answers = [];
      for (const one of asked()) answers.push(await answerOf(engine.generate(one, NEVER)));
      return { answers, recorder };
    };
    const [without, reusing] = [await run(0), await run(1e6)];
    for (const [i, answer] of reusing.answers.entries()) {
      const expected = without.answers[i]!;
      expect(answer.tokens).toEqual(expected.tokens);
      expect(answer.finish.speculation).toEqual(expected.finish.speculation);
    }
    expect(reusing.answers.map(({ finish }) => finish.cachedTokens)).toEqual([0, 59, 40, 60]);
    expect(without.answers.map(({ finish }) => finish.cachedTokens)).toEqual([0, 0, 0, 0]);
    expect(reusing.recorder.starts.map((start) => start.queriedTokens)).toEqual([60, 60, 43, 80]);
    expect(without.recorder.starts.every((start) => start.queriedTokens === 0)).toBe(true);
    const computed = reusing.recorder.steps.reduce((sum, { promptRows }) => sum + promptRows, 0);
    expect(computed).toBe(60 + 1 + 3 + 20);
  });

  it('is computed all the same where its logprobs are told, and nothing is looked up', async () => {
    const { engine, recorder } = openEngine({ nextLogits, maxCaches: 40, cacheBytesPerPosition: 1, limits });
    await answerOf(engine.generate(request(prompt(60), LIMIT), NEVER));
    const { finish } = await answerOf(engine.generate(request(prompt(60), { ...LIMIT, promptLogprobs: 0 }), NEVER));
    expect(finish.cachedTokens).toBe(0);
    expect(recorder.starts.map(({ queriedTokens }) => queriedTokens)).toEqual([60, 0]);
  });

  it('goes on where the earlier answer ended, as a chat does', async () => {
    const { engine } = openEngine({ nextLogits, maxCaches: 40, cacheBytesPerPosition: 1, limits });
    const first = await answerOf(engine.generate(request(prompt(30), LIMIT), NEVER));
    const chat = [...prompt(30), ...first.tokens, 1, 2, 3];
    const second = await answerOf(engine.generate(request(chat, LIMIT), NEVER));
    // The last token of an answer is never computed.
    expect(second.finish.cachedTokens).toBe(30 + 20 - 1);
  });

  it('may begin like one that was given up, and like one that still runs', async () => {
    const { engine, recorder } = openEngine({ nextLogits, maxCaches: 40, cacheBytesPerPosition: 1, limits });
    const controller = new AbortController();
    const iterator = engine
      .generate(request(prompt(50), { maxTokens: 200, ignoreEos: true }), controller.signal)
      [Symbol.asyncIterator]();
    await iterator.next();
    const beside = await answerOf(engine.generate(request(prompt(50), LIMIT), NEVER));
    expect(beside.finish.cachedTokens).toBe(49);
    controller.abort();
    await iterator.return?.();
    const behind = await answerOf(engine.generate(request(prompt(50), LIMIT), NEVER));
    expect(behind.finish.cachedTokens).toBe(49);
    expect(recorder.finishes.map(({ finish }) => finish.reason)).toContain('aborted');
  });

  it('waits for one that is being computed and begins alike, and for no other', async () => {
    const { engine, recorder } = openEngine({
      nextLogits,
      maxCaches: 40,
      cacheBytesPerPosition: 1,
      maxRows: 32,
      maxSequences: 8,
      limits,
    });
    const asked = [
      ...Array.from({ length: 3 }, () => request(prompt(200), LIMIT)),
      request(prompt(200), { ...LIMIT, cacheSalt: 'other' }),
      request(prompt(90, 3), LIMIT),
      request([...prompt(150), 3, 1, 4], { ...LIMIT, drafter: 'none' }),
    ];
    const answers = await Promise.all(asked.map((one) => answerOf(engine.generate(one, NEVER))));
    expect(answers.map(({ finish }) => finish.cachedTokens)).toEqual([0, 199, 199, 0, 0, 150]);
    const computed = recorder.steps.reduce((sum, { promptRows }) => sum + promptRows, 0);
    expect(computed).toBe(200 + 1 + 1 + 200 + 90 + 3);
    const plain = openEngine({ nextLogits, drafter: null, limits: { prefixCacheBytes: 0 } }).engine;
    for (const [i, answer] of answers.entries()) {
      expect(answer.tokens).toEqual((await answerOf(plain.generate({ ...asked[i]!, drafter: null }, NEVER))).tokens);
    }
  });

  it('is not told from another by salt', async () => {
    const { engine } = openEngine({ nextLogits, maxCaches: 40, cacheBytesPerPosition: 1, limits });
    const cached = async (cacheSalt: string | null) =>
      (await answerOf(engine.generate(request(prompt(50), { ...LIMIT, cacheSalt }), NEVER))).finish.cachedTokens;
    expect([await cached('a'), await cached('b'), await cached(null), await cached('a'), await cached(null)]).toEqual([
      0, 0, 0, 49, 49,
    ]);
  });

  it('loses its drafter, and nothing else, when that cannot be shown what is reused', async () => {
    const { engine } = openEngine({
      nextLogits,
      drafter: new ThrowingDrafter('observe', 1),
      maxCaches: 40,
      cacheBytesPerPosition: 1,
      limits,
    });
    const first = await answerOf(engine.generate(request(prompt(50), { ...LIMIT, maxTokens: 1 }), NEVER));
    const second = await answerOf(engine.generate(request(prompt(50), { ...LIMIT, maxTokens: 5 }), NEVER));
    expect(first.finish.speculation.drafterError).toBeNull();
    expect(second.finish.speculation.drafterError).toBe(ThrowingDrafter.MESSAGE);
    expect(second.tokens).toHaveLength(5);
  });
});
