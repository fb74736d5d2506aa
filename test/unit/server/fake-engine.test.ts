/** The fake engine keeps the rules that the engine port and the record of speculation state. */
import { describe, expect, test } from 'vitest';
import type { DecodeEvent, FinishEvent } from '../../../src/core/decode-event.ts';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { GenerateRequest, StepReport } from '../../../src/engine/engine.ts';
import { FakeEngine, type FakeEngineOptions } from '../../support/fake-engine.ts';
import { Gate } from '../../support/gate.ts';
import { until } from '../../support/labelled-timeout.ts';

const BASE: GenerateRequest = {
  id: 'r',
  promptTokens: [1, 2, 3],
  sampling: GREEDY,
  maxTokens: null,
  stopTokenIds: [],
  stopStrings: [],
  includeStopString: false,
  ignoreEos: false,
  skipSpecialTokens: true,
  drafter: null,
  draftTokens: null,
};

async function run(request: Partial<GenerateRequest>, options: FakeEngineOptions = {}) {
  const steps: StepReport[] = [];
  const finishes: FinishEvent[] = [];
  const observer = {
    onStart: () => undefined,
    onStep: (step: StepReport) => steps.push(step),
    onFinish: (_: GenerateRequest, finish: FinishEvent) => finishes.push(finish),
  };
  const engine = new FakeEngine({ observer, ...options });
  const events: DecodeEvent[] = [];
  for await (const event of engine.generate({ ...BASE, ...request }, new AbortController().signal)) events.push(event);
  return { engine, steps, finishes, events, finish: events.at(-1) as FinishEvent };
}

const SCRIPT = { text: 'one two three four five six seven', accepts: [2, 4, 0, 3, 1], proposes: [4, 4, 2, 0, 3] };

describe('the fake engine', () => {
  test('emits the same tokens and text with any draft and none', async () => {
    const results = await Promise.all(
      [{}, { drafter: 'none' }, { draftTokens: 1 }, { draftTokens: 3 }].map((request) =>
        run(request, { script: () => SCRIPT }),
      ),
    );
    const emitted = results.map(({ events }) => events.flatMap((event) => (event.type === 'tokens' ? event.tokens : [])));
    const texts = results.map(({ events }) => events.map((event) => (event.type === 'tokens' ? event.text : '')).join(''));
    for (const tokens of emitted) expect(tokens).toEqual(emitted[0]);
    expect(new Set(texts)).toEqual(new Set([SCRIPT.text]));
  });

  test.each(Array.from({ length: 12 }, (_, index) => index + 1))(
    'counts truly when %i tokens are allowed',
    async (maxTokens) => {
      const { finish, events, steps, finishes } = await run({ maxTokens }, { script: () => SCRIPT });
      const { rounds, noDraft } = finish.speculation;
      expect(finish.reason).toBe('length');
      expect(finish.completionTokens).toBe(maxTokens);
      expect(events.flatMap((event) => (event.type === 'tokens' ? event.tokens : []))).toHaveLength(maxTokens);
      expect(1 + rounds.reduce((sum, { emitted }) => sum + emitted, 0)).toBe(maxTokens);
      for (const { drafted, evaluated, accepted, emitted } of rounds) {
        expect(accepted).toBeLessThanOrEqual(evaluated);
        expect(evaluated).toBeLessThanOrEqual(drafted);
        expect(evaluated - accepted).toBeLessThanOrEqual(1);
        expect([accepted, accepted + 1]).toContain(emitted);
      }
      const withoutDraft = Object.values(noDraft).reduce((sum, count) => sum + count, 0);
      expect(rounds.filter(({ drafted }) => drafted === 0)).toHaveLength(withoutDraft);
      expect(steps.flatMap((step) => step.rounds.map(({ shortBy: _, drafter: __, ...round }) => round))).toEqual(rounds);
      expect(steps.reduce((sum, { emitted }) => sum + emitted, 0)).toBe(maxTokens);
      expect(finishes).toEqual([finish]);
    },
  );

  test.each([1, 2, 3, 4, 5])('ends at a stop token in place %i of a block', async (place) => {
    const text = `a${'b'.repeat(place - 1)}!${'c'.repeat(10)}`;
    const { finish } = await run({ stopTokenIds: [33] }, { script: () => ({ text, accepts: [4] }) });
    expect(finish).toMatchObject({ reason: 'stop', stopReason: 33, completionTokens: place + 1 });
    const accepted = Math.min(place, 4);
    expect(finish.speculation.rounds).toEqual([{ drafted: 4, evaluated: accepted, accepted, emitted: place }]);
  });

  test('ends when the context is full', async () => {
    const { finish } = await run({ ignoreEos: true }, { info: { maxContext: 10 } });
    expect(finish).toMatchObject({ reason: 'length', completionTokens: 7 });
  });

  test.each<readonly [string, Partial<GenerateRequest>]>([
    ['invalid_request', { promptTokens: [] }],
    ['context_length_exceeded', { promptTokens: new Array<number>(512).fill(1) }],
  ])('refuses with %s', async (code, request) => {
    await expect(run(request)).rejects.toMatchObject({ code });
  });

  test('serves those who wait first come, first served, and refuses one too many', async () => {
    const gate = new Gate();
    const engine = new FakeEngine({ info: { maxSequences: 1 }, maxWaiting: 1, beforeStep: () => gate.opened });
    const order: string[] = [];
    const ask = async (id: string) => {
      for await (const event of engine.generate({ ...BASE, id, maxTokens: 1 }, new AbortController().signal)) {
        if (event.type === 'finish') order.push(id);
      }
    };
    const both = [ask('first'), ask('second')];
    await until('one runs and one waits', () => engine.load().running === 1 && engine.load().waiting === 1);
    await expect(ask('third')).rejects.toMatchObject({ code: 'overloaded' });
    gate.open();
    await Promise.all(both);
    expect(order).toEqual(['first', 'second']);
  });

  test('drains: it refuses new requests and aborts what is left', async () => {
    const gate = new Gate();
    const engine = new FakeEngine({ beforeStep: (_, step) => (step === 1 ? gate.opened : undefined) });
    const events = engine.generate(BASE, new AbortController().signal);
    await events.next();
    await engine.drain(AbortSignal.abort());
    await expect(engine.generate(BASE, new AbortController().signal).next()).rejects.toMatchObject({ code: 'unavailable' });
    gate.open();
    expect((await events.next()).value).toMatchObject({ type: 'finish', reason: 'aborted' });
    await events.return();
    expect(engine.load()).toEqual({ running: 0, waiting: 0, cacheUsage: 0 });
  });
});
