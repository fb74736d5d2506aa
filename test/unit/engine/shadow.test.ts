import { describe, expect, it } from 'vitest';
import { GREEDY, type SamplingParams } from '../../../src/core/sampling-params.ts';
import type { Drafter } from '../../../src/drafter/drafter.ts';
import { requestFraction } from '../../../src/engine/drafter-split.ts';
import { OracleDrafter } from '../../support/oracle-drafter.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { answerOf, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });
const SAMPLED = { temperature: 1, topP: 1, topK: 0, minP: 0, seed: 5n };

function wrongFrom(slot: number, sampling = GREEDY): Drafter {
  return new WrongFromDrafter({
    next: nextToken(nextLogits, sampling),
    vocabSize: VOCAB,
    wrongFrom: slot,
    maxDraftTokens: 4,
  });
}

function oracle(sampling: SamplingParams): Drafter {
  return new OracleDrafter({ next: nextToken(nextLogits, sampling), vocabSize: VOCAB, maxDraftTokens: 4 });
}

function shadowOf(engine: ReturnType<typeof openEngine>['engine'], name = 'wrong-from') {
  return engine.drafterStatus().find((status) => status.name === name)?.shadow ?? null;
}

describe('a shadow drafter', () => {
  it.each([
    ['greedily', GREEDY],
    ['when sampling', SAMPLED],
  ])('is scored as if it had served, on the same prefixes, and changes neither tokens nor rounds (%s)', async (_, sampling) => {
    const shadow = { drafters: ['wrong-from'], rate: 1 };
    const options = { nextLogits, drafter: oracle(sampling), maxSequences: 3, maxRows: 9 };
    const { engine, recorder } = openEngine({ ...options, more: [wrongFrom(2, sampling)], parts: { shadow } });
    const { engine: without, recorder: other } = openEngine({ ...options, more: [wrongFrom(2, sampling)] });
    const asked = [5, 6, 7, 8, 9].map((length) =>
      request(
        Array.from({ length }, (_, i) => (i * length) % VOCAB),
        { maxTokens: 20 + length, ignoreEos: true, sampling },
      ),
    );
    const run = (one: typeof engine) => Promise.all(asked.map((ask) => answerOf(one.generate(ask, NEVER))));
    const [answers, expected] = [await run(engine), await run(without)];
    expect(answers.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
    expect(answers.map(({ finish }) => finish.speculation)).toEqual(expected.map(({ finish }) => finish.speculation));

    const scored = recorder.steps.flatMap(({ shadows }) => shadows);
    expect(other.steps.flatMap(({ shadows }) => shadows)).toEqual([]);
    expect(scored.length).toBeGreaterThan(20);
    for (const { drafted, accepted, drafter, shadow: name } of scored) {
      expect([drafter, name]).toEqual(['oracle', 'wrong-from']);
      expect(accepted).toBe(Math.min(2, drafted));
    }
    const status = shadowOf(engine)!;
    expect(status.counts.numDrafts).toBe(scored.length);
    expect(status.failures).toBe(0);
    const [pair] = status.paired;
    // The oracle's drafts are cut to nothing less than what is compared, and all of it is accepted.
    const lengths = scored.map(({ drafted, served }) => Math.min(drafted, served.drafted)).filter((length) => length > 0);
    const difference = lengths.reduce((sum, length) => sum + Math.min(2, length) - length, 0) / lengths.length;
    expect(pair).toMatchObject({ served: 'oracle', difference: { count: lengths.length, requests: 5 } });
    expect(pair?.difference.mean).toBeCloseTo(difference, 10);
    expect(difference).toBeLessThan(0);
    expect(pair?.positions[0]).toMatchObject({ pairs: lengths.length, shadow: lengths.length, served: lengths.length });
    expect(pair?.positions[2]).toMatchObject({ shadow: 0 });
    expect(pair?.positions[2]?.served).toBe(pair?.positions[2]?.pairs);
  });

  it('that is better than the one that serves is followed over the rounds that decide its drafts', async () => {
    const shadow = { drafters: ['oracle'], rate: 1 };
    const { engine, recorder } = openEngine({ nextLogits, more: [wrongFrom(1)], parts: { shadow } });
    await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 30, ignoreEos: true, drafter: 'wrong-from' }), NEVER));
    const scored = recorder.steps.flatMap(({ shadows }) => shadows);
    const full = scored.filter(({ drafted }) => drafted === 4);
    expect(full.length).toBeGreaterThan(5);
    for (const { accepted, served } of full) expect([accepted, served.accepted]).toEqual([4, 1]);
    expect(shadowOf(engine, 'oracle')?.paired[0]?.difference.mean).toBeGreaterThan(2);
  });

  it('may serve others at the same moment: it is still asked once a round', async () => {
    const shadow = { drafters: ['wrong-from', 'oracle'], rate: 1 };
    const { engine, recorder } = openEngine({ nextLogits, more: [wrongFrom(2)], maxSequences: 4, parts: { shadow } });
    const asked = ['oracle', 'wrong-from', 'none', null].map((drafter, i) =>
      request([i, 2, 3], { maxTokens: 15, ignoreEos: true, drafter }),
    );
    await Promise.all(asked.map((one) => answerOf(engine.generate(one, NEVER))));
    for (const { shadow: name, drafted, evaluated, accepted } of recorder.steps.flatMap(({ shadows }) => shadows)) {
      expect(accepted).toBe(name === 'oracle' ? evaluated : Math.min(2, drafted));
    }
    expect(shadowOf(engine)?.paired.map(({ served }) => served)).toEqual(['oracle']);
    expect(shadowOf(engine, 'oracle')?.paired.map(({ served }) => served)).toEqual(['wrong-from']);
  });

  it('takes part in the share of the requests that it was given', async () => {
    const shadow = { drafters: ['wrong-from'], rate: 0.3 };
    const { engine, others } = openEngine({ nextLogits, more: [wrongFrom(2)], parts: { shadow } });
    let opened = 0;
    const open = others[0]!.open.bind(others[0]);
    others[0]!.open = () => {
      opened++;
      return open();
    };
    const asked = Array.from({ length: 60 }, (_, i) => request([i % VOCAB, 1], { maxTokens: 4, ignoreEos: true }));
    for (const one of asked) await answerOf(engine.generate(one, NEVER));
    const expected = asked.filter((one) => requestFraction(one, 'shadow') < 0.3).length;
    expect(opened).toBe(expected);
    expect(expected).toBeGreaterThan(5);
    expect(expected).toBeLessThan(40);
  });

  it.each(['open', 'observe', 'propose', 'dispose'] as const)(
    'that fails to %s is told of, and costs the request nothing',
    async (call) => {
      const failing = new ThrowingDrafter(call);
      const failures: [string, string][] = [];
      const { engine } = openEngine({
        nextLogits,
        more: [failing],
        parts: {
          shadow: { drafters: [failing.kind], rate: 1 },
          observers: [
            {
              onStart: () => undefined,
              onStep: () => undefined,
              onFinish: () => undefined,
              onShadowFailure: (name, reason) => failures.push([name, reason]),
            },
          ],
        },
      });
      const { finish } = await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 15, ignoreEos: true }), NEVER));
      expect(finish.speculation).toMatchObject({ drafter: 'oracle', drafterError: null });
      expect(finish.completionTokens).toBe(15);
      expect(failures).toEqual([[failing.kind, expect.any(String)]]);
      expect(shadowOf(engine, failing.kind)).toMatchObject({ failures: 1, lastFailure: failures[0]![1] });
    },
  );

  it('sees every row: its requests begin anew, also where others reuse a beginning', async () => {
    const { engine } = openEngine({
      nextLogits,
      more: [wrongFrom(2)],
      limits: { prefixCacheBytes: 1e9 },
      parts: { shadow: { drafters: ['wrong-from'], rate: 1 } },
    });
    const asked = Array.from({ length: 30 }, (_, i) => i % VOCAB);
    for (let i = 0; i < 2; i++) {
      const { finish } = await answerOf(engine.generate(request(asked, { maxTokens: 8, ignoreEos: true }), NEVER));
      expect(finish.cachedTokens).toBe(0);
    }
    expect(shadowOf(engine)).toMatchObject({ failures: 0, counts: { acceptanceLength: { requests: 2 } } });
  });

  it('is not left open, nor is the one that serves, when the target has no cache for the request', async () => {
    const shadow = { drafters: ['wrong-from'], rate: 1 };
    const { engine, drafter, others } = openEngine({ nextLogits, more: [wrongFrom(2)], maxCaches: 0, parts: { shadow } });
    await expect(answerOf(engine.generate(request([1, 2]), NEVER))).rejects.toMatchObject({ code: 'overloaded' });
    expect([drafter?.openStates, others[0]?.openStates]).toEqual([0, 0]);
  });

  it('is left out where its memory is not free, and keeps nobody waiting', async () => {
    const { engine, target } = openEngine({ nextLogits, drafter: null, more: [heavy()], cacheBytes: 1e5, parts: shadowed });
    expect(target.cacheBytesPerPosition * 48).toBeLessThan(1e5);
    const asked = request([1, 2, 3], { maxTokens: 10, ignoreEos: true, drafter: 'none' });
    expect((await answerOf(engine.generate(asked, NEVER))).finish.completionTokens).toBe(10);
    expect(shadowOf(engine)).toBeNull();
  });
});

const shadowed = { shadow: { drafters: ['wrong-from'], rate: 1 } };

function heavy(): Drafter {
  return Object.assign(wrongFrom(2), { bytesPerPosition: 1e6 });
}
