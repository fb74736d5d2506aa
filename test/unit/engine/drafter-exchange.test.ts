import { expect, it } from 'vitest';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import { DrafterExchange, type LoadDrafter } from '../../../src/engine/drafter-exchange.ts';
import { DrafterSwaps } from '../../../src/engine/drafter-swaps.ts';
import { GuardedDrafter, type GuardedServed } from '../../../src/engine/guarded-drafter.ts';
import type { ServedDrafter } from '../../../src/engine/served-drafter.ts';
import { ScriptedTarget } from '../../support/scripted-target.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { NEVER } from './engine-fixture.ts';

const target = new ScriptedTarget({ vocabSize: 100, nextLogits: () => new Float32Array(100) });

function served(weightBytes: number, drafter = new ThrowingDrafter('open', 1000)): ServedDrafter {
  return { name: 'live', drafter, draftTokens: 3, weightBytes, lengths: FIXED_LENGTH };
}

function guard(one: ServedDrafter): GuardedServed {
  const options = { name: one.name, timeoutMs: 1000, quarantineMs: 0, onQuarantine: () => undefined };
  return { ...one, drafter: new GuardedDrafter(one.drafter, options) };
}

function setUp(load: LoadDrafter, drafterBytes = Number.POSITIVE_INFINITY) {
  const swaps = new DrafterSwaps([guard(served(100))], () => undefined);
  const observers = [{ onStart: () => undefined, onStep: () => undefined, onFinish: () => undefined }];
  const cacheBytes = Number.POSITIVE_INFINITY;
  return { swaps, exchange: new DrafterExchange({ swaps, target, cacheBytes, drafterBytes, observers, load, guard }) };
}

it('a drafter has the memory that those leave which are loaded, also those that are still used', async () => {
  const free: number[] = [];
  const { swaps, exchange } = setUp(async (_, __, freeBytes) => {
    free.push(freeBytes);
    return served(30);
  }, 500);
  for (let swap = 0; swap < 3; swap++) await exchange.exchange('live', 'next', NEVER);
  expect(free).toEqual([400, 370, 340]);
  // Both of the earlier ones were superseded; the first drafter is what may come back.
  expect(swaps.takeUnused(new Set())).toHaveLength(2);
  await exchange.exchange('live', 'next', NEVER);
  expect(free.at(-1)).toBe(370);
});
