import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { Drafter } from '../../../src/drafter/drafter.ts';
import { GuardedDrafter } from '../../../src/engine/guarded-drafter.ts';
import { until, within } from '../../support/labelled-timeout.ts';
import type { NextLogits } from '../../support/scripted-target.ts';
import { answerOf, answersTexts, NEVER, openEngine, oracle, request, VOCAB } from './engine-fixture.ts';

const nextLogits = answersTexts({});
const POISON = 3;

/** NaN in one place behind sequences that begin with the poison and have so many tokens; the largest logit looks fine. */
function poisoned(length: number): NextLogits {
  return (prefix) => {
    const logits = nextLogits(prefix);
    if (prefix[0] === POISON && prefix.length >= length) logits[VOCAB - 1] = Number.NaN;
    return logits;
  };
}

describe('logits that are no numbers', () => {
  it.each([
    { title: 'greedily', sampling: GREEDY, drafter: null },
    { title: 'when sampling', sampling: { ...GREEDY, temperature: 0.7, seed: 3n }, drafter: null },
    { title: 'with drafts', sampling: GREEDY, drafter: oracle(nextLogits) },
  ])('fail their request, and no other ($title)', async ({ sampling, drafter }) => {
    const { engine, target, recorder } = openEngine({ nextLogits: poisoned(8), drafter });
    const asked = [POISON, 1, 2].map((first) => request([first, 5, 5], { sampling, maxTokens: 20, ignoreEos: true }));
    const tokens: number[] = [];
    const failing = async () => {
      for await (const event of engine.generate(asked[0]!, NEVER)) if (event.type === 'tokens') tokens.push(...event.tokens);
    };
    const others = asked.slice(1).map((one) => answerOf(engine.generate(one, NEVER)));
    await expect(within('the failure', failing())).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining('NaN'),
    });
    for (const { tokens: whole } of await Promise.all(others)) expect(whole).toHaveLength(20);
    // What was chosen before is told: 3 tokens of the prompt and 5 of the answer go before the bad row.
    expect(tokens).toHaveLength(5);
    const finish = recorder.finishes.find((entry) => entry.request === asked[0])?.finish;
    expect(finish).toMatchObject({ reason: 'error', completionTokens: 5, promptTokens: 3 });
    expect(recorder.steps.reduce((sum, { emitted }) => sum + emitted, 0)).toBe(45);
    expect(target.openCaches).toBe(0);
  });

  it('behind the prompt fail it before its first token', async () => {
    const { engine, recorder } = openEngine({ nextLogits: poisoned(0) });
    await expect(answerOf(engine.generate(request([POISON, 1]), NEVER))).rejects.toMatchObject({ code: 'internal' });
    expect(recorder.finishes.map(({ finish }) => [finish.reason, finish.completionTokens])).toEqual([['error', 0]]);
  });
});

it('a step that fails is the end of each request in it, and observers are told', async () => {
  const { engine, recorder } = openEngine({
    nextLogits,
    duringStep(step) {
      if (step === 1) throw new Error('the device was lost');
    },
  });
  const answers = ['a', 'b'].map((prompt) => answerOf(engine.generate(request(prompt, { maxTokens: 5 }), NEVER)));
  for (const result of await Promise.allSettled(answers)) expect(result.status).toBe('rejected');
  expect(recorder.finishes.map(({ finish }) => finish.reason)).toEqual(['error', 'error']);
  await answerOf(engine.generate(request('c', { maxTokens: 5 }), NEVER));
});

it('a step for as many as run that cannot be loaded fails nobody: fewer share each step, and the others wait', async () => {
  const { engine, recorder } = openEngine({ nextLogits, maxSequences: 4, onPrepare: (sequences) => (sequences < 3 ? 4 : 2) });
  const asked = ['a', 'b', 'c', 'd', 'e'].map((prompt) => request(prompt, { maxTokens: 20, ignoreEos: true }));
  const answers = await Promise.all(asked.map((one) => answerOf(engine.generate(one, NEVER))));
  for (const { tokens, finish } of answers) expect([tokens.length, finish.reason]).toEqual([20, 'length']);
  expect(Math.max(...recorder.steps.map(({ sequences }) => sequences))).toBe(2);
});

/** Answers as the inner one does, until it does not answer at all. */
class HangingDrafter implements Drafter {
  readonly kind = 'hanging';
  readonly taps: readonly number[] = [];
  readonly maxDraftTokens: number;
  hangs = false;
  calls = 0;
  disposed = false;
  readonly #inner = oracle(nextLogits);
  #release: () => void = () => undefined;

  constructor() {
    this.maxDraftTokens = this.#inner.maxDraftTokens;
  }

  open() {
    return this.#inner.open();
  }

  release(): void {
    this.hangs = false;
    this.#release();
  }

  async propose(...[requests, signal]: Parameters<Drafter['propose']>) {
    this.calls++;
    if (this.hangs) {
      await new Promise<void>((resolve) => {
        this.#release = resolve;
      });
    }
    return this.#inner.propose(requests, signal.aborted ? NEVER : signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disposed = true;
  }
}

const TIMEOUT_MS = 40;

it('an answer leaves nothing behind with a signal that outlives it', async () => {
  const { engine } = openEngine({ nextLogits });
  const controller = new AbortController();
  const wholes = ['a', 'b'].map((prompt) => answerOf(engine.generate(request(prompt, { maxTokens: 5 }), controller.signal)));
  await Promise.all(wholes);
  await until('all have left', () => getEventListeners(controller.signal, 'abort').length === 0);
});

describe('a drafter that hangs', () => {
  it('loses its sequences, which go on without; new ones say why they have no drafts', async () => {
    const drafter = new HangingDrafter();
    const { engine, recorder } = openEngine({ nextLogits, drafter, limits: { drafterTimeoutMs: TIMEOUT_MS } });
    const ask = () => answerOf(engine.generate(request('a', { maxTokens: 30, ignoreEos: true }), NEVER));
    expect((await ask()).finish.speculation.drafterError).toBeNull();
    drafter.hangs = true;
    const [one, two] = await Promise.all([ask(), ask()]);
    const reason = `hanging did not answer within ${TIMEOUT_MS} ms`;
    for (const { finish, tokens } of [one, two]) {
      expect(tokens).toHaveLength(30);
      expect(finish.speculation).toMatchObject({ drafter: 'hanging', drafterError: reason, noDraft: { 'drafter-failed': 29 } });
    }
    expect(recorder.quarantines).toEqual([['hanging', reason]]);
    const calls = drafter.calls;
    const later = await ask();
    expect(later.finish.speculation.drafterError).toContain('left out for a while');
    drafter.release();
    expect((await ask()).finish.speculation.drafterError).toContain('left out for a while');
    expect(drafter.calls).toBe(calls);
  });

  it('comes back when its time has passed and its call has ended', async () => {
    const drafter = new HangingDrafter();
    const reasons: string[] = [];
    const guarded = new GuardedDrafter(drafter, {
      name: 'x',
      timeoutMs: TIMEOUT_MS,
      quarantineMs: 10,
      onQuarantine: (reason) => reasons.push(reason),
    });
    drafter.hangs = true;
    await expect(guarded.propose([], NEVER)).rejects.toThrow('x did not answer within 40 ms');
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(() => guarded.open()).toThrow('left out');
    drafter.release();
    await until('the call has ended', () => !guarded.quarantined);
    using state = guarded.open();
    expect(await guarded.propose([{ state, anchor: 1, budget: 0 }], NEVER)).toHaveLength(1);
    expect(reasons).toHaveLength(1);
    await guarded[Symbol.asyncDispose]();
    expect(drafter.disposed).toBe(true);
  });

  it('is asked no more while its call is under way, by nobody', async () => {
    const drafter = new HangingDrafter();
    const guarded = new GuardedDrafter(drafter, {
      name: 'x',
      timeoutMs: TIMEOUT_MS,
      quarantineMs: 0,
      onQuarantine: () => undefined,
    });
    drafter.hangs = true;
    await expect(guarded.propose([], NEVER)).rejects.toThrow('did not answer');
    await expect(guarded.propose([], NEVER)).rejects.toThrow('left out for a while');
    expect(drafter.calls).toBe(1);
    drafter.release();
    await until('the call has ended', () => !guarded.quarantined);
    expect(await guarded.propose([], NEVER)).toEqual([]);
  });

  it('is not disposed of under its call, and does not keep the engine from ending', async () => {
    const drafter = new HangingDrafter();
    const guarded = new GuardedDrafter(drafter, {
      name: 'x',
      timeoutMs: TIMEOUT_MS,
      quarantineMs: 10,
      onQuarantine: () => undefined,
    });
    drafter.hangs = true;
    await expect(guarded.propose([], NEVER)).rejects.toThrow();
    await within('the end', guarded[Symbol.asyncDispose]());
    expect(drafter.disposed).toBe(false);
  });

  it('is left to the end of the process with the target, whose weights it may use', async () => {
    const drafter = new HangingDrafter();
    const { engine, target } = openEngine({ nextLogits, drafter, limits: { drafterTimeoutMs: TIMEOUT_MS } });
    drafter.hangs = true;
    await answerOf(engine.generate(request('a', { maxTokens: 3 }), NEVER));
    await within('the end', engine[Symbol.asyncDispose]());
    expect([drafter.disposed, target.disposed]).toEqual([false, false]);
  });
});
