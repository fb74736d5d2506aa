import { describe, expect, it } from 'vitest';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { DraftRequest, Proposal } from '../../../src/drafter/drafter.ts';
import { DrafterExchange, type LoadDrafter } from '../../../src/engine/drafter-exchange.ts';
import { DrafterSwaps } from '../../../src/engine/drafter-swaps.ts';
import { GuardedDrafter, type GuardedServed } from '../../../src/engine/guarded-drafter.ts';
import type { ServedDrafter } from '../../../src/engine/served-drafter.ts';
import { tryDrafter } from '../../../src/engine/try-drafter.ts';
import { Gate } from '../../support/gate.ts';
import { until, within } from '../../support/labelled-timeout.ts';
import { testRuntime } from '../../support/runtime.ts';
import { ScriptedTarget } from '../../support/scripted-target.ts';
import { type DrafterCall, ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { NEVER } from './engine-fixture.ts';

const VOCAB = 100;
const WORKS = 1000;
const target = new ScriptedTarget({ vocabSize: VOCAB, nextLogits: () => new Float32Array(VOCAB) });

class Loaded extends ThrowingDrafter {
  disposals = 0;

  override async [Symbol.asyncDispose](): Promise<void> {
    this.disposals++;
  }
}

class Unsure extends Loaded {
  override async propose(requests: readonly DraftRequest[]) {
    return requests.map(({ budget }) => ({ tokens: Array(budget).fill(1), probabilities: Array(budget).fill(Number.NaN) }));
  }
}

class Foreign extends Loaded {
  override async propose(requests: readonly DraftRequest[]) {
    return requests.map(({ budget }) => ({ tokens: Array(budget).fill(999) }));
  }
}

/** Pays no heed to its signal. */
class Hanging extends Loaded {
  readonly gate = new Gate();
  readonly calls: AbortSignal[] = [];
  openStates = 0;

  override open() {
    this.openStates++;
    return { ...super.open(), [Symbol.dispose]: () => void this.openStates-- };
  }

  override async propose(requests: readonly DraftRequest[], signal?: AbortSignal): Promise<readonly Proposal[]> {
    this.calls.push(signal!);
    await this.gate.opened;
    return super.propose(requests);
  }
}

function served(drafter: ThrowingDrafter, weightBytes = 0): ServedDrafter {
  return { name: 'live', drafter, draftTokens: 3, weightBytes, lengths: FIXED_LENGTH };
}

function guard(one: ServedDrafter): GuardedServed {
  const options = { name: one.name, timeoutMs: 1000, quarantineMs: 0, onQuarantine: () => undefined };
  return { ...one, drafter: new GuardedDrafter(one.drafter, options) };
}

function setUp(load: LoadDrafter, { drafterBytes = Number.POSITIVE_INFINITY, timeoutMs = 10_000 } = {}) {
  const failures: string[][] = [];
  const swaps = new DrafterSwaps([guard(served(new Loaded('open', WORKS), 100))], () => undefined);
  const exchange = new DrafterExchange({
    swaps,
    target,
    cacheBytes: Number.POSITIVE_INFINITY,
    drafterBytes,
    observers: [
      {
        onStart: () => undefined,
        onStep: () => undefined,
        onFinish: () => undefined,
        onSwapFailure: (...failure) => failures.push(failure),
      },
    ],
    load,
    attempt: (one, signal) => tryDrafter(one, { runtime: testRuntime(), hiddenSize: 8, vocabSize: VOCAB }, signal),
    timeoutMs,
    guard,
  });
  return { swaps, failures, swap: () => exchange.exchange('live', 'next', NEVER) };
}

it('a drafter has the memory that those leave which are loaded, also those that are still used', async () => {
  const free: number[] = [];
  const load: LoadDrafter = async (_, __, freeBytes) => {
    free.push(freeBytes);
    return served(new Loaded('open', WORKS), 30);
  };
  const { swaps, swap } = setUp(load, { drafterBytes: 500 });
  for (let count = 0; count < 3; count++) await swap();
  expect(free).toEqual([400, 370, 340]);
  // Both of the earlier ones were superseded; the first drafter is what may come back.
  expect(swaps.takeUnused(new Set())).toHaveLength(2);
  await swap();
  expect(free.at(-1)).toBe(370);
});

describe('the draft before a drafter serves', () => {
  const refusal = (reason: RegExp) => ({
    code: 'invalid_request',
    message: expect.stringMatching(reason),
    details: { param: 'path', code: 'drafter_refused' },
  });

  it.each<DrafterCall>(['open', 'observe', 'propose', 'dispose'])('refuses one that fails (%s)', async (call) => {
    const drafter = new Loaded(call);
    const { swaps, swap } = setUp(async () => served(drafter));
    const reason = /next, which failed at its first draft: the drafter failed on purpose/;
    await expect(swap()).rejects.toMatchObject(refusal(reason));
    expect([drafter.disposals, swaps.loaded.length, swaps.history('live').length]).toEqual([1, 1, 0]);
  });

  it('refuses one whose draft cannot be used', async () => {
    await expect(setUp(async () => served(new Unsure('open', WORKS))).swap()).rejects.toThrow(/got NaN/);
    await expect(setUp(async () => served(new Foreign('open', WORKS))).swap()).rejects.toThrow(/got 999/);
  });

  it('leaves no state open', async () => {
    const drafter = new Hanging('open', WORKS);
    drafter.gate.open();
    const { swaps, swap } = setUp(async () => served(drafter));
    expect(await swap()).toMatchObject({ state: 'watching' });
    expect(drafter.openStates).toBe(0);
    await swaps.current[0]!.drafter[Symbol.asyncDispose]();
    expect(drafter.disposals).toBe(1);
  });

  it('refuses one that hangs, which keeps what it uses until its call has ended', async () => {
    const drafter = new Hanging('open', WORKS);
    const { swaps, failures, swap } = setUp(async () => served(drafter, 30), { timeoutMs: 2 });
    const first = swaps.current;
    await expect(within('the refusal', swap())).rejects.toMatchObject(
      refusal(/first draft: live did not answer within \d+ ms/),
    );
    expect(failures).toEqual([['live', 'next', expect.stringContaining('did not answer')]]);
    expect(drafter.calls[0]?.aborted).toBe(true);
    expect(swaps.current).toEqual(first);
    const [, left] = swaps.loaded;
    expect(left).toMatchObject({ weightBytes: 30, drafter: { hangs: true } });
    expect([drafter.openStates, drafter.disposals, swaps.hasRetired]).toEqual([1, 0, true]);
    drafter.gate.open();
    await until('its call has ended', () => !left!.drafter.hangs);
    expect(drafter.openStates).toBe(0);
    const [unused] = swaps.takeUnused(new Set());
    await unused!.drafter[Symbol.asyncDispose]();
    expect(drafter.disposals).toBe(1);
  });
});
