import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/app-error.ts';
import type { FinishEvent } from '../../../src/core/decode-event.ts';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { Drafter, DraftState, ForkedState, Proposal } from '../../../src/drafter/drafter.ts';
import type { EngineObserver, SwapRecord } from '../../../src/engine/engine.ts';
import { CheckedDrafter } from '../../support/checked-drafter.ts';
import { Gate } from '../../support/gate.ts';
import { until } from '../../support/labelled-timeout.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { answerOf, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });
const RULES = { leastRequests: 4, mostRequests: 8, limit: 3.5, mostFailures: 1 };

/** A drafter that says when it was disposed of. */
class Watched extends WrongFromDrafter {
  override readonly kind = 'watched';
  disposals = 0;

  constructor(wrongFrom: number) {
    super({ next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB, wrongFrom, maxDraftTokens: 4 });
  }

  fork(state: DraftState, length: number): ForkedState {
    const forked = this.open();
    const { tokens } = state as unknown as { readonly tokens: readonly number[] };
    forked.observe({ position: 0, tokens: tokens.slice(0, length), taps: new Map(), firstRow: 0 });
    return { state: forked, length: Math.min(length, tokens.length) };
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.disposals++;
  }
}

/** Has nothing to propose. */
class Silent extends Watched {
  constructor() {
    super(4);
  }

  override async propose(requests: readonly unknown[]): Promise<readonly Proposal[]> {
    return requests.map(() => ({ tokens: [] }));
  }
}

/** Does not answer before it is released; tells when it was disposed of. */
class Hanging extends Watched {
  release: () => void = () => undefined;

  constructor() {
    super(4);
  }

  override propose(): Promise<never> {
    return new Promise((_, reject) => {
      this.release = () => reject(new Error('too late'));
    });
  }
}

const OTHERS: Readonly<Record<string, () => Drafter>> = {
  silent: () => new Silent(),
  hanging: () => new Hanging(),
  propose: () => new ThrowingDrafter('propose'),
  observe: () => new ThrowingDrafter('observe'),
  open: () => new ThrowingDrafter('open'),
};

function setUp(first: number, prefixCacheBytes = 0) {
  const records: SwapRecord[] = [];
  const observer: EngineObserver = {
    onStart: () => undefined,
    onStep: () => undefined,
    onFinish: () => undefined,
    onSwap: (record) => records.push(record),
  };
  const initial = new Watched(first);
  const loaded = new Map<string, Watched>();
  const misuses: string[][] = [];
  const slow = new Gate();
  const { engine, target } = openEngine({
    nextLogits,
    drafter: initial,
    limits: { prefixCacheBytes, drafterTimeoutMs: 30 },
    maxCaches: 40,
    parts: {
      observers: [observer],
      swapRules: RULES,
      loadDrafter: async ({ name, draftTokens }, path) => {
        if (path === 'slow') await slow.opened;
        if (path === 'broken') throw new AppError('invalid_request', 'broken');
        const other = OTHERS[path]?.();
        if (other instanceof Hanging) loaded.set(path, other);
        if (other !== undefined) return { name, drafter: other, draftTokens, lengths: FIXED_LENGTH };
        const drafter = new Watched(Number(path));
        loaded.set(path, drafter);
        const checked = new CheckedDrafter(drafter);
        misuses.push(checked.misuses);
        return { name, drafter: checked, draftTokens, lengths: FIXED_LENGTH };
      },
    },
  });
  const ask = (i: number) => {
    const prompt = Array.from({ length: 20 }, (_, position) => (i * 5 + position) % VOCAB);
    return engine.generate(request(prompt, { maxTokens: 15, ignoreEos: true }), NEVER);
  };
  const serve = async (count: number) => {
    const answers = [];
    for (let i = 0; i < count; i++) answers.push(await answerOf(ask(i)));
    return answers;
  };
  const accepted = async () => (await answerOf(ask(3))).finish.speculation.rounds[0]!.accepted;
  const history = () => engine.drafterStatus()[0]!.swaps;
  return { engine, target, slow, records, initial, loaded, misuses, serve, ask, accepted, history };
}

describe('a drafter that takes the place of another one', () => {
  it('serves new requests, while one that runs ends with its own, and no token changes', async () => {
    const { engine, serve, accepted, ask, initial, loaded, misuses } = setUp(3);
    const expected = await serve(2);
    const running = ask(1)[Symbol.asyncIterator]();
    await running.next();
    expect(await engine.loadDrafter('watched', '1')).toMatchObject({ state: 'watching', path: '1', drafter: 'watched' });
    expect(await accepted()).toBe(1);
    const finishes: FinishEvent[] = [];
    for (let next = await running.next(); next.done !== true; next = await running.next()) {
      if (next.value.type === 'finish') finishes.push(next.value);
    }
    expect(finishes).toMatchObject([{ speculation: { drafterError: null } }]);
    expect(finishes[0]?.speculation.rounds.map((round) => round.accepted)).toEqual([3, 3, 3, 1]);
    expect((await serve(2)).map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
    expect([initial.disposals, loaded.get('1')!.disposals]).toEqual([0, 0]);
    expect(misuses.flat()).toEqual([]);
  });

  it('and accepts significantly less goes again by itself', async () => {
    const { engine, serve, accepted, history, initial, loaded, records } = setUp(3);
    await serve(5);
    await engine.loadDrafter('watched', '1');
    await serve(3);
    expect(history()).toMatchObject([
      { state: 'watching', before: { requests: 5 }, after: { mean: expect.any(Number), requests: 3 } },
    ]);
    await serve(1);
    expect(history()).toMatchObject([
      { state: 'rolled-back', after: { requests: 4 }, reason: expect.stringMatching(/fell from/) },
    ]);
    expect(await accepted()).toBe(3);
    expect([initial.disposals, loaded.get('1')!.disposals]).toEqual([0, 1]);
    expect(records.map(({ state }) => state)).toEqual(['watching', 'rolled-back']);
  });

  it('and accepts as much or more stays, and the old one goes', async () => {
    const { engine, serve, accepted, history, initial, loaded } = setUp(1);
    await serve(5);
    await engine.loadDrafter('watched', '3');
    await serve(7);
    expect(initial.disposals).toBe(0);
    await serve(1);
    expect(history()).toMatchObject([{ state: 'kept', reason: null }]);
    expect(await accepted()).toBe(3);
    expect([initial.disposals, loaded.get('3')!.disposals]).toEqual([1, 0]);
  });

  it('stays, and that is told, when too little is known of the one before it', async () => {
    const { engine, serve, history } = setUp(3);
    await serve(2);
    await engine.loadDrafter('watched', '1');
    await serve(8);
    expect(history()).toMatchObject([{ state: 'kept', reason: expect.stringMatching(/fewer than 4 requests/) }]);
  });

  it.each([
    ['propose', /failed in 2 requests.*failed on purpose/],
    ['observe', /failed in 2 requests.*failed on purpose/],
    ['open', /failed in 2 requests.*failed on purpose/],
    ['hanging', /failed in 2 requests.*did not answer/],
  ])('and fails (%s) goes again, whatever is known of the one before it', async (path, reason) => {
    const { engine, serve, accepted, history, initial } = setUp(3);
    await serve(1);
    await engine.loadDrafter('watched', path);
    await serve(1);
    expect(history()).toMatchObject([{ state: 'watching', after: { mean: 0 } }]);
    await serve(1);
    expect(history()).toMatchObject([{ state: 'rolled-back', reason: expect.stringMatching(reason) }]);
    expect(await accepted()).toBe(3);
    expect(initial.disposals).toBe(0);
  });

  it('and hangs is not waited for when it has gone, and disposed of when its call has come to an end', async () => {
    const { engine, serve, history, loaded } = setUp(3);
    await serve(1);
    await engine.loadDrafter('watched', 'hanging');
    await serve(4);
    expect(history()).toMatchObject([{ state: 'rolled-back' }]);
    const hanging = loaded.get('hanging') as Hanging;
    expect(hanging.disposals).toBe(0);
    hanging.release();
    await serve(1);
    expect(hanging.disposals).toBe(1);
  });

  it('and proposes nothing goes again, as one of which nothing is accepted', async () => {
    const { engine, serve, accepted, history } = setUp(3);
    await serve(5);
    await engine.loadDrafter('watched', 'silent');
    await serve(4);
    expect(history()).toMatchObject([
      { state: 'rolled-back', after: { mean: 0, requests: 4 }, reason: expect.stringMatching(/fell from/) },
    ]);
    expect(await accepted()).toBe(3);
  });

  it('may be replaced before that is decided; what was kept last is still what comes back', async () => {
    const { engine, serve, accepted, history, initial, loaded } = setUp(3);
    await serve(5);
    await engine.loadDrafter('watched', '1');
    await serve(1);
    await engine.loadDrafter('watched', 'propose');
    await serve(2);
    expect(history().map(({ state }) => state)).toEqual(['superseded', 'rolled-back']);
    expect(await accepted()).toBe(3);
    expect([initial.disposals, loaded.get('1')!.disposals]).toEqual([0, 1]);
  });

  it('goes when it is replaced before that is decided, once the last request that was given it has ended', async () => {
    const { engine, serve, accepted, initial, loaded } = setUp(3);
    await serve(1);
    await engine.loadDrafter('watched', '1');
    const long = request([1, 2, 3], { maxTokens: 400, ignoreEos: true });
    const running = engine.generate(long, NEVER)[Symbol.asyncIterator]();
    await running.next();
    await engine.loadDrafter('watched', '2');
    expect(await accepted()).toBe(2);
    expect([engine.load().running, loaded.get('1')!.disposals]).toEqual([1, 0]);
    for (let next = await running.next(); next.done !== true; next = await running.next());
    await until('its end', () => loaded.get('1')!.disposals === 1);
    expect([initial.disposals, loaded.get('2')!.disposals]).toEqual([0, 0]);
    await engine[Symbol.asyncDispose]();
    expect([initial.disposals, loaded.get('1')!.disposals, loaded.get('2')!.disposals]).toEqual([1, 1, 1]);
  });

  it('leaves no kept beginning behind that only the old one knew', async () => {
    const { engine, serve, initial, misuses } = setUp(1, 1e9);
    await serve(5);
    await engine.loadDrafter('watched', '3');
    const answers = await serve(9);
    expect(initial.disposals).toBe(1);
    expect(answers.every(({ finish }) => finish.speculation.drafterError === null)).toBe(true);
    expect(misuses.flat()).toEqual([]);
  });

  it('finds the target still there when the engine ends while it is loaded, and does not keep it from ending', async () => {
    const { engine, target, slow } = setUp(3);
    const loading = engine.loadDrafter('watched', 'slow');
    await engine[Symbol.asyncDispose]();
    expect(target.disposed).toBe(false);
    slow.open();
    await expect(loading).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('changes nothing when it cannot be loaded, or there is no such name', async () => {
    const { engine, accepted, history } = setUp(3);
    await expect(engine.loadDrafter('watched', 'broken')).rejects.toMatchObject({ code: 'invalid_request' });
    await expect(engine.loadDrafter('other', '1')).rejects.toMatchObject({ code: 'invalid_request' });
    await expect(engine.loadDrafter('none', '1')).rejects.toMatchObject({ code: 'invalid_request' });
    const first = engine.loadDrafter('watched', '2');
    await expect(engine.loadDrafter('watched', '1')).rejects.toMatchObject({ code: 'rate_limited' });
    await first;
    expect(await accepted()).toBe(2);
    expect(history()).toHaveLength(1);
  });
});
