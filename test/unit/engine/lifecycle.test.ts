import { describe, expect, it } from 'vitest';
import type { DecodeEvent } from '../../../src/core/decode-event.ts';
import { Gate } from '../../support/gate.ts';
import { until, within } from '../../support/labelled-timeout.ts';
import { answerOf, answersTexts, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

/** Dots for ever. */
const nextLogits = answersTexts({});
const endless = (prompt = 'Go on') => request(prompt, { maxTokens: 10_000 });

/** Reads the first event, and leaves the others. */
async function begin(events: AsyncIterable<DecodeEvent>): Promise<AsyncIterator<DecodeEvent>> {
  const iterator = events[Symbol.asyncIterator]();
  await within('a first event', iterator.next());
  return iterator;
}

describe('a request that cannot be served', () => {
  it.each([
    { title: 'an empty prompt', prompt: [], code: 'invalid_request' },
    { title: 'an id outside the vocabulary', prompt: [1, VOCAB], code: 'invalid_request' },
    { title: 'a negative id', prompt: [-1], code: 'invalid_request' },
    { title: 'half an id', prompt: [0.5], code: 'invalid_request' },
    { title: 'a prompt as long as the context', prompt: new Array<number>(256).fill(1), code: 'context_length_exceeded' },
  ])('because of $title is refused at once', ({ prompt, code }) => {
    const { engine, target } = openEngine({ nextLogits });
    expect(() => engine.generate(request(prompt), NEVER)).toThrowError(expect.objectContaining({ code }));
    expect([engine.load().waiting, target.steps]).toEqual([0, 0]);
  });

  it('because no drafter has the name that it asks for is refused at once, with the names there are', () => {
    const { engine } = openEngine({ nextLogits });
    expect(() => engine.generate(request([1], { drafter: 'nobody' }), NEVER)).toThrowError(
      expect.objectContaining({
        message: 'Expected drafter to be one of oracle, none, got nobody. Choose one of them.',
        details: { param: 'drafter', code: 'invalid_value' },
      }),
    );
  });

  it('names both lengths when the prompt is too long', () => {
    const { engine } = openEngine({ nextLogits, maxContext: 8 });
    expect(() => engine.generate(request([1, 2, 3, 4, 5, 6, 7, 8]), NEVER)).toThrowError(
      expect.objectContaining({ details: { promptTokens: 8, maxContext: 8 } }),
    );
  });

  it('because of an empty stop string fails, and leaves its place to others', async () => {
    const { engine, target } = openEngine({ nextLogits, maxSequences: 1 });
    await expect(answerOf(engine.generate(request('a', { stopStrings: [''] }), NEVER))).rejects.toMatchObject({
      code: 'invalid_request',
    });
    expect(target.openCaches).toBe(0);
    await answerOf(engine.generate(request('a', { maxTokens: 3 }), NEVER));
  });
});

describe('requests beyond the sequences there are', () => {
  it('wait, and are served in the order in which they came', async () => {
    const gate = new Gate();
    const { engine, recorder } = openEngine({ nextLogits, maxSequences: 2, drafter: null, duringStep: () => gate.opened });
    const asked = Array.from({ length: 8 }, (_, i) => request(`${i}`, { maxTokens: 4 }));
    const answers = asked.map((one) => answerOf(engine.generate(one, NEVER)));
    await until('the first ones run', () => engine.load().running === 2);
    expect(engine.load().waiting).toBe(6);
    gate.open();
    await Promise.all(answers);
    expect(recorder.finishes.map((entry) => entry.request.id)).toEqual(asked.map(({ id }) => id));
    const [first, last] = [recorder.finishes[0], recorder.finishes.at(-1)];
    expect(last?.finish.timing.queueMs).toBeGreaterThan(first!.finish.timing.queueMs);
  });

  it('are served by priority, lower ones first, and by arrival among equals', async () => {
    const gate = new Gate();
    const { engine, recorder } = openEngine({ nextLogits, maxSequences: 1, duringStep: () => gate.opened });
    const running = answerOf(engine.generate(request('0', { maxTokens: 2 }), NEVER));
    await until('the first one runs', () => engine.load().running === 1);
    const priorities = [5, 0, -1, 5, 0];
    const asked = priorities.map((priority) => request(`${priority}`, { maxTokens: 2, priority }));
    const answers = asked.map((one) => answerOf(engine.generate(one, NEVER)));
    await until('the others wait', () => engine.load().waiting === asked.length);
    gate.open();
    await Promise.all([running, ...answers]);
    expect(recorder.finishes.slice(1).map((entry) => asked.indexOf(entry.request))).toEqual([2, 1, 4, 0, 3]);
  });

  it('do not stall running answers with a long prompt: it comes in pieces beside them', async () => {
    const { engine, recorder } = openEngine({ nextLogits, drafter: null, maxRows: 64 });
    const stream = answerOf(engine.generate(request('a', { maxTokens: 40, ignoreEos: true }), NEVER));
    await until('it runs', () => recorder.steps.length > 2);
    const long = request(new Array<number>(150).fill(7), { maxTokens: 1 });
    await answerOf(engine.generate(long, NEVER));
    const shared = recorder.steps.filter(({ promptRows, decodeRows }) => promptRows > 0 && decodeRows > 0);
    // Before the machine is known, pieces are short.
    expect(shared[0]?.promptRows).toBe(16);
    await stream;
  });

  it('are refused when too many wait already, and welcome when there is room again', async () => {
    const gate = new Gate();
    const { engine } = openEngine({ nextLogits, maxSequences: 2, maxWaiting: 1, duringStep: () => gate.opened });
    const three = ['a', 'b', 'c'].map((prompt) => answerOf(engine.generate(request(prompt, { maxTokens: 3 }), NEVER)));
    await until('two run', () => engine.load().running === 2);
    const refused = expect.objectContaining({ code: 'overloaded', details: { limit: 'max_num_queued_reqs' } });
    expect(() => engine.generate(request('d'), NEVER)).toThrowError(refused);
    gate.open();
    await Promise.all(three);
    await answerOf(engine.generate(request('d', { maxTokens: 3 }), NEVER));
  });

  it('are refused when their prompts are too long together, and one of any length is welcome when nobody waits', async () => {
    const gate = new Gate();
    const { engine } = openEngine({
      nextLogits,
      maxSequences: 1,
      limits: { maxWaitingTokens: 10 },
      duringStep: () => gate.opened,
    });
    const ask = (length: number) =>
      answerOf(engine.generate(request(new Array<number>(length).fill(1), { maxTokens: 1, ignoreEos: true }), NEVER));
    const answers = [ask(30)];
    await until('one runs', () => engine.load().running === 1);
    answers.push(ask(6), ask(4));
    await until('two wait', () => engine.load().waiting === 2);
    expect(() => engine.generate(request([1]), NEVER)).toThrowError(
      expect.objectContaining({ code: 'overloaded', details: { limit: 'max_num_queued_tokens' } }),
    );
    gate.open();
    await Promise.all(answers);
    await ask(50);
  });

  it('are refused beyond the limits where memory is what they wait for, though sequences are free', async () => {
    const gate = new Gate();
    const { engine } = openEngine({
      nextLogits,
      drafter: null,
      maxWaiting: 1,
      cacheBytesPerPosition: 1,
      // One sequence of full length, and the page that it may begin within.
      cacheBytes: 256 + 16,
      duringStep: () => gate.opened,
    });
    const ask = () => answerOf(engine.generate(request('a', { maxTokens: 200, ignoreEos: true }), NEVER));
    const answers = [ask()];
    await until('one runs', () => engine.load().running === 1);
    answers.push(ask());
    await until('one waits', () => engine.load().waiting === 1);
    expect(() => engine.generate(request('b', { maxTokens: 200 }), NEVER)).toThrowError(
      expect.objectContaining({ code: 'overloaded', details: { limit: 'max_num_queued_reqs' } }),
    );
    gate.open();
    await Promise.all(answers);
  });

  it('are not counted as waiting while sequences are free, however long their prompts are', async () => {
    const { engine } = openEngine({ nextLogits, maxSequences: 4, limits: { maxWaitingTokens: 10 } });
    const asked = [30, 30, 30, 30].map((length) =>
      answerOf(engine.generate(request(new Array<number>(length).fill(1), { maxTokens: 1, ignoreEos: true }), NEVER)),
    );
    await expect(Promise.all(asked)).resolves.toHaveLength(4);
  });

  it('are none while sequences are free, though they come at the same moment', async () => {
    const { engine } = openEngine({ nextLogits, maxSequences: 4, maxWaiting: 0 });
    const asked = ['a', 'b', 'c', 'd'].map((prompt) => answerOf(engine.generate(request(prompt, { maxTokens: 3 }), NEVER)));
    await expect(Promise.all(asked)).resolves.toHaveLength(4);
  });

  it('that were asked for before the queue was full are refused when they come too late', async () => {
    const gate = new Gate();
    const { engine } = openEngine({ nextLogits, maxSequences: 1, maxWaiting: 0, duringStep: () => gate.opened });
    const late = engine.generate(request('late', { maxTokens: 2 }), NEVER);
    const first = answerOf(engine.generate(request('first', { maxTokens: 2 }), NEVER));
    await expect(answerOf(late)).rejects.toMatchObject({ code: 'overloaded' });
    gate.open();
    await first;
  });
});

describe('choices of one request', () => {
  const choices = (count: number, length = 1) => {
    const promptTokens = new Array<number>(length).fill(1);
    return Array.from({ length: count }, () => request(promptTokens, { maxTokens: 2, ignoreEos: true }));
  };
  const refused = (code: string, details: object) => expect.objectContaining({ code, details });

  it('are refused for good when they could not wait on an idle server, and for now when others are in their way', async () => {
    const gate = new Gate();
    const { engine } = openEngine({ nextLogits, maxSequences: 2, maxWaiting: 3, duringStep: () => gate.opened });
    expect(() => engine.checkQueue(choices(6))).toThrowError(refused('invalid_request', { param: 'n' }));
    expect(() => engine.checkQueue(choices(6))).toThrowError(/at most 5 answers/);
    engine.checkQueue(choices(5));
    const running = answerOf(engine.generate(request('a', { maxTokens: 2 }), NEVER));
    await until('one runs', () => engine.load().running === 1);
    expect(() => engine.checkQueue(choices(6))).toThrowError(refused('invalid_request', { param: 'n' }));
    expect(() => engine.checkQueue(choices(5))).toThrowError(refused('overloaded', { limit: 'max_num_queued_reqs' }));
    engine.checkQueue(choices(4));
    gate.open();
    await running;
  });

  it('have one prompt where beginnings are kept, and one each where they are not', async () => {
    const limits = { maxWaitingTokens: 100 };
    const open = (prefixCacheBytes: number) =>
      openEngine({ nextLogits, maxSequences: 2, maxCaches: 40, limits: { ...limits, prefixCacheBytes } }).engine;
    const many = choices(20, 90);
    expect(() => open(0).checkQueue(many)).toThrowError(refused('invalid_request', { param: 'prompt' }));
    const engine = open(1e6);
    engine.checkQueue(many);
    const answers = await Promise.all(many.map((one) => answerOf(engine.generate(one, NEVER))));
    for (const { tokens } of answers) expect(tokens).toHaveLength(2);
  });

  it('are refused by a server that drains', async () => {
    const { engine } = openEngine({ nextLogits });
    await engine.drain(NEVER);
    expect(() => engine.checkQueue(choices(1))).toThrowError(expect.objectContaining({ code: 'unavailable' }));
  });
});

it('an urgent prompt gets more rows than those that came earlier', async () => {
  const gate = new Gate();
  const { engine, recorder } = openEngine({ nextLogits, drafter: null, maxRows: 32, duringStep: () => gate.opened });
  const ask = (priority: number) => {
    const one = request(new Array<number>(100).fill(1), { maxTokens: 1, priority, ignoreEos: true });
    return { one, answer: answerOf(engine.generate(one, NEVER)) };
  };
  const early = ask(0);
  await until('the first one runs', () => engine.load().running === 1);
  const [late, urgent] = [ask(0), ask(-1)];
  gate.open();
  await Promise.all([early, late, urgent].map(({ answer }) => answer));
  expect(recorder.finishes.map((entry) => entry.request)).toEqual([urgent.one, early.one, late.one]);
});

describe('a reader that gives up', () => {
  it.each(['by leaving', 'by aborting'])('%s frees the sequence within one step', async (how) => {
    const { engine, target, recorder } = openEngine({ nextLogits });
    const controller = new AbortController();
    const iterator = await begin(engine.generate(endless(), controller.signal));
    const before = target.steps;
    if (how === 'by leaving') await iterator.return?.();
    else controller.abort();
    await until('the cache comes back', () => target.openCaches === 0);
    expect(target.steps - before).toBeLessThanOrEqual(1);
    expect(engine.load()).toEqual({ running: 0, waiting: 0, cacheUsage: 0 });
    expect(recorder.finishes.map(({ finish }) => finish.reason)).toEqual(['aborted']);
  });

  it('is told of the end when it aborts and reads on', async () => {
    const { engine, target } = openEngine({ nextLogits, drafter: null, maxContext: 100_000 });
    const controller = new AbortController();
    const answer = answerOf(engine.generate(endless(), controller.signal));
    await until('it runs', () => target.steps > 1);
    controller.abort();
    const { finish, tokens } = await answer;
    expect(finish).toMatchObject({ reason: 'aborted', stopReason: null, completionTokens: tokens.length });
  });

  it('ends a step that nobody else needs, at once', async () => {
    let hangs = false;
    let ended = false;
    const { engine, target } = openEngine({
      nextLogits,
      async duringStep(step, signal) {
        if (step !== 2) return;
        hangs = true;
        await new Promise((resolve) => signal?.addEventListener('abort', resolve));
        ended = true;
      },
    });
    const controller = new AbortController();
    const answer = answerOf(engine.generate(endless(), controller.signal));
    await until('the step hangs', () => hangs);
    controller.abort();
    expect((await answer).finish.reason).toBe('aborted');
    expect([ended, target.steps]).toEqual([true, 3]);
  });

  it('lets the step go on for the others', async () => {
    const gate = new Gate();
    const { engine, target } = openEngine({
      nextLogits,
      duringStep: (step, signal) => (step === 2 ? gate.opened.then(() => signal?.throwIfAborted()) : undefined),
    });
    const controller = new AbortController();
    const leaving = answerOf(engine.generate(endless(), controller.signal));
    const staying = answerOf(engine.generate(request('Stay', { maxTokens: 40 }), NEVER));
    await until('the step hangs', () => target.steps === 3);
    controller.abort();
    gate.open();
    expect((await leaving).finish.reason).toBe('aborted');
    expect((await staying).tokens).toHaveLength(40);
  });

  it('while it waits leaves the queue, and gets nothing', async () => {
    const gate = new Gate();
    const { engine } = openEngine({ nextLogits, maxSequences: 1, duringStep: () => gate.opened });
    const controller = new AbortController();
    const running = answerOf(engine.generate(request('a', { maxTokens: 3 }), NEVER));
    await until('one runs', () => engine.load().running === 1);
    const waiting = answerOf(engine.generate(endless(), controller.signal));
    await until('one waits', () => engine.load().waiting === 1);
    controller.abort();
    gate.open();
    expect(await waiting).toMatchObject({
      tokens: [],
      finish: { reason: 'aborted', completionTokens: 0, timing: { firstTokenMs: null } },
    });
    expect((await running).tokens).toHaveLength(3);
  });

  it('before it has begun gets nothing', async () => {
    const { engine, target } = openEngine({ nextLogits });
    const { finish, tokens } = await answerOf(engine.generate(endless(), AbortSignal.abort()));
    expect([finish.reason, tokens.length, target.steps]).toEqual(['aborted', 0, 0]);
  });
});

describe('a step that fails', () => {
  it('fails those who took part in it, and the engine goes on with the others', async () => {
    const lost = new Error('the device was lost');
    const { engine, target, drafter } = openEngine({
      nextLogits,
      maxSequences: 2,
      duringStep(step) {
        if (step === 1) throw lost;
      },
    });
    const answers = ['a', 'b', 'c'].map((prompt) => answerOf(engine.generate(request(prompt, { maxTokens: 5 }), NEVER)));
    const [first, second, third] = await Promise.allSettled(answers);
    expect([first, second]).toEqual([
      { status: 'rejected', reason: lost },
      { status: 'rejected', reason: lost },
    ]);
    expect(third).toMatchObject({ status: 'fulfilled', value: { tokens: { length: 5 } } });
    expect([target.openCaches, drafter?.openStates]).toEqual([0, 0]);
  });

  it('leaves alone prompts that had no rows in it', async () => {
    const lost = new Error('the device was lost');
    let failing = false;
    const { engine, recorder } = openEngine({
      nextLogits,
      maxSequences: 8,
      maxRows: 64,
      drafter: null,
      duringStep() {
        if (!failing || engine.load().running < 8) return;
        failing = false;
        throw lost;
      },
    });
    const decoding = answerOf(engine.generate(request('a', { maxTokens: 200, ignoreEos: true }), NEVER));
    await until('one decodes', () => recorder.steps.length > 1);
    failing = true;
    // Before the machine is known, a step that decodes has 16 rows for prompts: 8, 4, 2, 1 and 1 of them go to the first five.
    const prompts = Array.from({ length: 7 }, () =>
      answerOf(engine.generate(request(new Array<number>(100).fill(1), { maxTokens: 3, ignoreEos: true }), NEVER)),
    );
    const results = await Promise.allSettled([decoding, ...prompts]);
    expect(results.map(({ status }) => status)).toEqual([...new Array<string>(6).fill('rejected'), 'fulfilled', 'fulfilled']);
    expect(results.slice(0, 6).every((result) => result.status === 'rejected' && result.reason === lost)).toBe(true);
    for (const result of results.slice(6)) expect(result).toMatchObject({ value: { tokens: { length: 3 } } });
  });
});

describe('the end of an engine', () => {
  it('lets running and waiting requests finish when it drains, and refuses new ones', async () => {
    const { engine, target } = openEngine({ nextLogits, maxSequences: 1 });
    const answers = ['a', 'b'].map((prompt) => answerOf(engine.generate(request(prompt, { maxTokens: 30 }), NEVER)));
    const drained = engine.drain(NEVER);
    expect(() => engine.generate(request('c'), NEVER)).toThrowError(expect.objectContaining({ code: 'unavailable' }));
    for (const { tokens } of await Promise.all(answers)) expect(tokens).toHaveLength(30);
    await within('draining', drained);
    expect(target.openCaches).toBe(0);
  });

  it('aborts what is left when draining takes too long', async () => {
    const { engine, target } = openEngine({ nextLogits, maxContext: 100_000, drafter: null, maxSequences: 1 });
    const [running, waiting] = [answerOf(engine.generate(endless(), NEVER)), answerOf(engine.generate(endless(), NEVER))];
    await until('it runs', () => target.steps > 1);
    await within('draining', engine.drain(AbortSignal.timeout(1)));
    expect(target.openCaches).toBe(0);
    expect((await running).finish.reason).toBe('aborted');
    expect((await waiting).finish.reason).toBe('aborted');
  });

  it('aborts what runs and what waits when it is disposed of, and closes target and drafter', async () => {
    const { engine, target, recorder } = openEngine({ nextLogits, maxSequences: 1, drafter: null, maxContext: 100_000 });
    const answers = [answerOf(engine.generate(endless(), NEVER)), answerOf(engine.generate(endless(), NEVER))];
    await until('it runs', () => target.steps > 1);
    await within('disposing', engine[Symbol.asyncDispose]());
    for (const { finish } of await Promise.all(answers)) expect(finish.reason).toBe('aborted');
    expect(recorder.finishes).toHaveLength(2);
    expect(target.disposed).toBe(true);
    expect(() => engine.generate(request('c'), NEVER)).toThrowError(expect.objectContaining({ code: 'unavailable' }));
  });

  it('comes at once when nothing was asked', async () => {
    const { engine, target } = openEngine({ nextLogits });
    await within('disposing', engine[Symbol.asyncDispose]());
    expect([target.steps, target.disposed]).toEqual([0, true]);
  });
});
