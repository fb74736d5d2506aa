import { describe, expect, it, onTestFinished } from 'vitest';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import { decodeRound } from '../../../src/decode/round.ts';
import type { Drafter, DraftState, ForkedState } from '../../../src/drafter/drafter.ts';
import { NO_PROCESSOR } from '../../../src/engine/answer-rules.ts';
import { GuardedDrafter } from '../../../src/engine/guarded-drafter.ts';
import { PrefixCache, SNAPSHOT_POSITIONS } from '../../../src/engine/prefix-cache.ts';
import { snapshotPrompts } from '../../../src/engine/prompt-snapshots.ts';
import { RunningRequest } from '../../../src/engine/running-request.ts';
import { startRequest } from '../../../src/engine/start-request.ts';
import { CheckedDrafter } from '../../support/checked-drafter.ts';
import { HistoryDrafter } from '../../support/history-drafter.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { ScriptedTarget } from '../../support/scripted-target.ts';
import { NEVER, request, TOKENIZER, VOCAB } from './engine-fixture.ts';

class Recurrent extends ScriptedTarget {
  readonly recurrent = { bytesPerSequence: 1000 };
}

/** Drafts nothing, knows no end in a call that it is told to hang in, and can fail to fork. */
class Scripted extends HistoryDrafter {
  readonly kind = 'scripted';
  hangs = false;
  forks = true;
  calls = 0;

  override async propose(...[requests, signal]: Parameters<Drafter['propose']>) {
    this.calls++;
    if (this.hangs) await new Promise(() => undefined);
    return super.propose(requests, signal);
  }

  fork(state: DraftState, length: number): ForkedState {
    if (!this.forks) throw new Error('no fork today');
    const forked = this.open();
    forked.observe({
      position: 0,
      tokens: (state as unknown as { tokens: number[] }).tokens.slice(0, length),
      taps: new Map(),
      firstRow: 0,
    });
    return { state: forked, length };
  }

  protected draft(): readonly number[] {
    return [];
  }
}

/** Prompts of other beginnings each, as far as a block goes; each with the drafter. */
async function setUp(prompts: number) {
  const inner = new Scripted();
  const checked = new CheckedDrafter(inner);
  const guarded = new GuardedDrafter(checked, {
    name: 'x',
    timeoutMs: 40,
    quarantineMs: 60_000,
    onQuarantine: () => undefined,
  });
  const target = new Recurrent({
    vocabSize: VOCAB,
    nextLogits: hashedLogits({ vocabSize: VOCAB, seed: 1, memory: 4 }),
    maxContext: 1024,
    maxSequences: 4,
    maxCaches: 40,
    maxRows: 1024,
  });
  const prefixes = new PrefixCache(target, 1e9);
  const served = { name: 'x', drafter: guarded, draftTokens: 4, lengths: FIXED_LENGTH };
  const running = Array.from({ length: prompts }, (_, i) => {
    const one = new RunningRequest(request(Array.from({ length: 600 }, (_, at) => (i + at) % VOCAB)), NEVER);
    one.start(
      startRequest(one.request, {
        target,
        drafters: [served],
        tokenizer: TOKENIZER,
        prefixes,
        running: [],
        shadows: [],
        makeProcessor: NO_PROCESSOR,
      }),
    );
    return one;
  });
  onTestFinished(() => {
    for (const one of running) one.release();
    prefixes[Symbol.dispose]();
    expect([target.openCaches, checked.openStates, checked.misuses]).toEqual([0, 0, []]);
  });
  const sequences = running.map(({ started }) => started!.sequence);
  await decodeRound(target, sequences, NEVER, target.maxRows, SNAPSHOT_POSITIONS);
  expect(sequences.map(({ cache }) => cache.length)).toEqual(running.map(() => SNAPSHOT_POSITIONS));
  const calls = inner.calls;
  return { inner, prefixes, running, sequences, checked, callsSince: () => inner.calls - calls };
}

describe('copies of prompts at the end of a block', () => {
  it('take one call of the drafter for all of them', async () => {
    const { prefixes, running, sequences, callsSince } = await setUp(3);
    await snapshotPrompts(running, prefixes, NEVER);
    expect(callsSince()).toBe(1);
    expect(prefixes.bytes).toBe(3 * 1000);
    expect(sequences.map(({ drafterError }) => drafterError)).toEqual([null, null, null]);
  });

  it('are not asked for twice', async () => {
    const { prefixes, running, callsSince } = await setUp(2);
    await snapshotPrompts(running, prefixes, NEVER);
    await snapshotPrompts(running, prefixes, NEVER);
    expect([callsSince(), prefixes.bytes]).toEqual([1, 2 * 1000]);
  });

  it('are made without a drafter that hangs: all wait for it once, and nobody has it any more', async () => {
    const { inner, prefixes, running, sequences, callsSince } = await setUp(3);
    inner.hangs = true;
    await snapshotPrompts(running, prefixes, NEVER);
    expect(callsSince()).toBe(1);
    for (const { drafting, drafterError } of sequences) {
      expect(drafting).toBeNull();
      expect(drafterError).toContain('did not answer');
    }
    expect(prefixes.bytes).toBe(3 * 1000);
  });

  it('that cannot be made cost the sequence nothing', async () => {
    const { inner, prefixes, running, sequences } = await setUp(2);
    inner.forks = false;
    await snapshotPrompts(running, prefixes, NEVER);
    expect(prefixes.bytes).toBe(0);
    for (const { drafting, drafterError } of sequences) {
      expect(drafting).not.toBeNull();
      expect(drafterError).toBeNull();
    }
  });
});
