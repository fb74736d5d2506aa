import { describe, expect, it } from 'vitest';
import { AbortedError } from '../../../src/core/aborted-error.ts';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { LengthPolicy } from '../../../src/decode/draft-length/length-policy.ts';
import { RoundFailedError } from '../../../src/decode/round-failed-error.ts';
import {
  type CommittedRows,
  type Drafter,
  type DraftRequest,
  NO_PROPOSAL,
  type Proposal,
} from '../../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { CheckedDrafter } from '../../support/checked-drafter.ts';
import { LiarDrafter } from '../../support/liar-drafter.ts';
import { OracleDrafter } from '../../support/oracle-drafter.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { ScriptedTarget, type ScriptedTargetOptions } from '../../support/scripted-target.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { type Asked, answer, expectedAnswer, expectInOrder, finish, round, start } from './round-fixture.ts';

const VOCAB = 8;
const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 11, memory: Number.POSITIVE_INFINITY });
const knowing = { next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB, maxDraftTokens: 4 };
const PROMPT = [1, 2, 3];

function openTarget(options: Partial<ScriptedTargetOptions> = {}): ScriptedTarget {
  return new ScriptedTarget({ vocabSize: VOCAB, nextLogits, ...options });
}

/** The rounds of one request, whose answer must be plain decoding's. */
async function roundsOf(drafter: Drafter | null, asked: Asked = { prompt: PROMPT }) {
  const target = openTarget();
  const sequence = start(target, asked, drafter && new CheckedDrafter(drafter));
  const outcomes = await finish(target, [sequence]);
  expect(answer(sequence)).toEqual(expectedAnswer(nextLogits, asked));
  return { rounds: sequence.rounds, sequence, steps: outcomes.length };
}

describe('a drafter that is', () => {
  it('always right gets all accepted, and a bonus token each round', async () => {
    const { rounds, steps } = await roundsOf(new OracleDrafter(knowing));
    expect(rounds.map(({ emitted }) => emitted)).toEqual([5, 5, 1]);
    expect(rounds.map(({ drafted, accepted }) => [drafted, accepted])).toEqual([
      [4, 4],
      [4, 4],
      [0, 0],
    ]);
    expect(steps).toBe(4);
  });

  it('always wrong costs nothing but its rows: each round emits one token', async () => {
    const { rounds } = await roundsOf(new LiarDrafter(knowing));
    expect(rounds).toHaveLength(11);
    expect(rounds[0]).toEqual({ drafted: 4, evaluated: 1, accepted: 0, emitted: 1 });
  });

  it.each([0, 1, 2, 3, 4])('wrong from slot %i emits one token more than it has right', async (wrongFrom) => {
    const { rounds } = await roundsOf(new WrongFromDrafter({ ...knowing, wrongFrom }), { prompt: PROMPT, maxTokens: 40 });
    for (const { drafted, emitted } of rounds) expect(emitted).toBe(Math.min(wrongFrom, drafted) + 1);
    expect(rounds[0]?.emitted).toBe(wrongFrom + 1);
  });

  it('absent leaves one token a round', async () => {
    const { rounds, sequence } = await roundsOf(null);
    expect(rounds).toHaveLength(11);
    expect([...sequence.noDraft]).toEqual([['no-drafter', 11]]);
  });
});

it('who decides on lengths is told what waits to be taken in', async () => {
  const state = {
    waitingRows: 0,
    observe({ tokens }: CommittedRows) {
      this.waitingRows += tokens.length;
    },
    rewind: () => undefined,
    [Symbol.dispose]: () => undefined,
  };
  const patient: Drafter = {
    kind: 'patient',
    maxDraftTokens: 4,
    taps: [],
    open: () => state,
    async propose([request]) {
      if (request!.budget > 0) state.waitingRows = 0;
      return [NO_PROPOSAL];
    },
    async [Symbol.asyncDispose]() {},
  };
  const waiting: number[] = [];
  const lengths: LengthPolicy = {
    ...FIXED_LENGTH,
    ask(candidates, step) {
      waiting.push(...candidates.map((candidate) => candidate.waiting));
      const drafts = waiting.length === 3;
      return drafts ? FIXED_LENGTH.ask(candidates, step) : candidates.map(() => ({ tokens: 0, reason: 'load' as const }));
    },
  };
  const target = openTarget();
  await finish(target, [start(target, { prompt: PROMPT, maxTokens: 5, lengths }, new CheckedDrafter(patient))]);
  expect(waiting).toEqual([0, 3, 4, 1, 2]);
});

it('a round tells apart what the step takes and what its rows do', async () => {
  const BUSY_MS = 5;
  const target = openTarget({
    nextLogits: (prefix) => {
      const end = performance.now() + BUSY_MS;
      while (performance.now() < end);
      return nextLogits(prefix);
    },
    duringStep: () => new Promise((resolve) => setTimeout(resolve, 3 * BUSY_MS)),
  });
  using sequence = start(target, { prompt: PROMPT }, null);
  const { verifyMs, commitMs } = await round(target, [sequence]);
  expect(verifyMs).toBeGreaterThan(2 * BUSY_MS);
  expect(commitMs).toBeGreaterThanOrEqual(BUSY_MS);
});

describe('a prompt that is longer than a step', () => {
  it('is computed in chunks, with logits for its last row only, and drafts begin behind it', async () => {
    const target = openTarget({ maxRows: 4 });
    const asked = { prompt: [1, 2, 3, 4, 5, 6, 7, 0, 1], maxTokens: 5 };
    const sequence = start(target, asked, new CheckedDrafter(new OracleDrafter(knowing)));
    const outcomes = await finish(target, [sequence]);
    expect(answer(sequence)).toEqual(expectedAnswer(nextLogits, asked));
    expect(outcomes.map(({ sequences: [outcome] }) => outcome?.promptRows)).toEqual([4, 4, 1, 0]);
    expect(target.stepRows).toEqual([4, 4, 1, 4]);
    expect(target.logitRows).toEqual([0, 0, 1, 4]);
  });
});

describe('an answer that ends inside a block', () => {
  const full = expectedAnswer(nextLogits, { prompt: PROMPT, maxTokens: 6 });
  // The first token is the prompt's; the block's four slots and the bonus follow.
  it.each([1, 2, 3, 4, 5])('at the length limit emits %i tokens of it', async (inBlock) => {
    const { sequence, rounds } = await roundsOf(new OracleDrafter(knowing), { prompt: PROMPT, maxTokens: 1 + inBlock });
    expect(sequence.ending).toEqual({ reason: 'length', stopReason: null });
    expect(rounds).toEqual([{ drafted: inBlock - 1, evaluated: inBlock - 1, accepted: inBlock - 1, emitted: inBlock }]);
  });

  const stopSlots = full.slice(1).map((token, slot) => ({ token, slot }));
  it.each(stopSlots)('with stop token $token in slot $slot emits nothing behind it', async ({ token }) => {
    const first = full.indexOf(token);
    const asked = { prompt: PROMPT, stopTokens: [token] };
    const { sequence, rounds } = await roundsOf(new OracleDrafter(knowing), asked);
    expect(answer(sequence)).toEqual(full.slice(0, first + 1));
    expect(sequence.ending).toEqual({ reason: 'stop', stopReason: token });
    if (first > 0) expect(rounds[0]).toMatchObject({ drafted: 4, emitted: first, accepted: Math.min(first, 4) });
  });
});

describe('a drafter that fails', () => {
  /** Two sequences of it and one of another, which must not notice. */
  async function besides(broken: Drafter) {
    const target = openTarget();
    const [faulty, fine] = [new CheckedDrafter(broken), new CheckedDrafter(new OracleDrafter(knowing))];
    const asked: Asked[] = [{ prompt: PROMPT }, { prompt: [4, 4] }, { prompt: [5] }];
    const sequences = asked.map((request, i) => start(target, request, i === 2 ? fine : faulty));
    await finish(target, sequences);
    for (const [i, request] of asked.entries()) {
      expect(answer(sequences[i]!)).toEqual(expectedAnswer(nextLogits, request));
    }
    for (const sequence of sequences) sequence[Symbol.dispose]();
    expect([faulty.openStates, fine.openStates, target.openCaches]).toEqual([0, 0, 0]);
    expect(sequences[2]).toMatchObject({ drafterError: null, rounds: { length: 3 } });
    return sequences.slice(0, 2);
  }

  it.each([0, 1, 2, 3])('to propose, after %i calls, is dropped and said to have failed', async (goodCalls) => {
    for (const sequence of await besides(new ThrowingDrafter('propose', goodCalls))) {
      expect(sequence.drafterError).toBe(ThrowingDrafter.MESSAGE);
      expect(sequence.noDraft.get('drafter-failed')).toBeGreaterThan(0);
    }
  });

  it.each([0, 1, 4])('to observe, after %i calls, is dropped by the one that it failed on', async (goodCalls) => {
    const [first, second] = await besides(new ThrowingDrafter('observe', goodCalls));
    expect([first?.drafterError, second?.drafterError]).toContain(ThrowingDrafter.MESSAGE);
  });

  it('to let go of its state does no harm', async () => {
    for (const sequence of await besides(new ThrowingDrafter('dispose'))) {
      expect(sequence.drafterError).toBe(ThrowingDrafter.MESSAGE);
    }
  });

  it.each([
    {
      title: 'by drafting more than it was asked for',
      tokens: (budget: number) => new Array<number>(budget + 1).fill(1),
      error: /at most \d draft tokens/,
    },
    {
      title: 'by drafting an id above the vocabulary',
      tokens: (budget: number) => [VOCAB].slice(0, budget),
      error: /of 0 to 7 .* got 8/,
    },
    { title: 'by drafting a negative id', tokens: (budget: number) => [-1].slice(0, budget), error: /got -1/ },
    { title: 'by drafting half an id', tokens: (budget: number) => [1.5].slice(0, budget), error: /got 1.5/ },
  ])('$title is dropped', async ({ tokens, error }) => {
    for (const sequence of await besides(
      withProposals((requests) => requests.map(({ budget }) => ({ tokens: tokens(budget) }))),
    )) {
      expect(sequence.drafterError).toMatch(error);
    }
  });

  it('by answering fewer requests than there were is dropped', async () => {
    for (const sequence of await besides(withProposals((requests) => requests.slice(1).map(() => ({ tokens: [] }))))) {
      expect(sequence.drafterError).toMatch(/Expected 2 proposals from ngram, got 1/);
    }
  });
});

describe('a round that comes to nothing', () => {
  const asked: Asked[] = [{ prompt: PROMPT }, { prompt: [6, 5, 4, 3] }];

  /** Runs the given round so that it fails, and sees that the answers are the same in the end. */
  async function interrupted(
    at: number,
    options: Partial<ScriptedTargetOptions>,
    drafter: CheckedDrafter,
    signals: Map<number, AbortSignal>,
  ) {
    const target = openTarget(options);
    const sequences = asked.map((request) => start(target, request, drafter));
    let failure: unknown = null;
    for (let number = 0; sequences.some(({ ending }) => ending === null); number++) {
      const running = sequences.filter(({ ending }) => ending === null);
      const before = running.map(({ tokens, cache, rounds }) => [...tokens, cache.length, rounds.length]);
      const attempt = round(target, running, signals.get(number));
      if (number !== at) {
        await attempt;
        continue;
      }
      failure = await attempt.then(
        () => null,
        (error: unknown) => error,
      );
      expect(running.map(({ tokens, cache, rounds }) => [...tokens, cache.length, rounds.length])).toEqual(before);
      for (const sequence of running) expectInOrder(sequence);
    }
    for (const [i, request] of asked.entries()) {
      expect(answer(sequences[i]!)).toEqual(expectedAnswer(nextLogits, request));
      expect(sequences[i]?.drafterError).toBeNull();
    }
    return failure;
  }

  it.each([0, 1, 2])('because it was aborted during step %i leaves everything as it was', async (at) => {
    const controller = new AbortController();
    const duringStep = (step: number) => {
      if (step === at) controller.abort();
    };
    const failure = await interrupted(
      at,
      { duringStep },
      new CheckedDrafter(new OracleDrafter(knowing)),
      new Map([[at, controller.signal]]),
    );
    expect(failure).toBeInstanceOf(AbortedError);
  });

  it.each([0, 1, 2])('because it was aborted while drafting in round %i leaves everything as it was', async (at) => {
    const controller = new AbortController();
    let calls = 0;
    const hanging = new CheckedDrafter(new OracleDrafter(knowing), async (signal) => {
      if (calls++ !== at) return;
      setTimeout(() => controller.abort(), 1);
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('terminated'))));
    });
    const failure = await interrupted(at, {}, hanging, new Map([[at, controller.signal]]));
    expect(failure).toBeInstanceOf(AbortedError);
  });

  it.each([0, 1, 2])('because step %i failed leaves everything as it was', async (at) => {
    const lost = new Error('the device was lost');
    const duringStep = (step: number) => {
      if (step === at) throw lost;
    };
    const failure = await interrupted(at, { duringStep }, new CheckedDrafter(new OracleDrafter(knowing)), new Map());
    expect(failure).toBeInstanceOf(RoundFailedError);
    expect(failure).toMatchObject({ message: lost.message, cause: lost });
  });
});

function withProposals(propose: (requests: readonly DraftRequest[]) => Proposal[]): Drafter {
  return Object.assign(new NgramDrafter(), { propose: async (requests: readonly DraftRequest[]) => propose(requests) });
}
