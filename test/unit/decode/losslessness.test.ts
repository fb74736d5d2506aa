/** Whatever is drafted, whoever shares the steps and whatever goes wrong: the tokens are those of plain decoding. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GREEDY, type SamplingParams } from '../../../src/core/sampling-params.ts';
import { AutoLength } from '../../../src/decode/draft-length/auto-length.ts';
import { CostModel } from '../../../src/decode/draft-length/cost-model.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { LengthPolicy } from '../../../src/decode/draft-length/length-policy.ts';
import type { Sequence } from '../../../src/decode/sequence.ts';
import type { Drafter } from '../../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { NoneDrafter } from '../../../src/drafter/none/none-drafter.ts';
import { CheckedDrafter } from '../../support/checked-drafter.ts';
import { ErraticLength } from '../../support/erratic-length.ts';
import { LiarDrafter } from '../../support/liar-drafter.ts';
import { OracleDrafter } from '../../support/oracle-drafter.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { type NextLogits, ScriptedTarget } from '../../support/scripted-target.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { type Asked, answer, expectedAnswer, expectInOrder, round, start } from './round-fixture.ts';

const MAX_SEQUENCES = 4;
const DRAFTERS = ['nobody', 'none', 'ngram', 'oracle', 'liar', 'wrong-from', 'throws in propose', 'throws in observe'] as const;
type DrafterName = (typeof DRAFTERS)[number];

interface Request extends Required<Asked> {
  readonly drafter: DrafterName;
  /** The round before which it comes. */
  readonly joins: number;
  /** Rounds after which its reader gives up; null: never. */
  readonly leavesAfter: number | null;
}

type Trouble = 'abort while drafting' | 'abort during the step' | 'step fails';

interface Scenario {
  readonly target: { readonly vocabSize: number; readonly seed: number; readonly memory: number };
  readonly maxRows: number;
  readonly requests: readonly Request[];
  /** Attempts at a round that come to nothing. */
  readonly troubles: ReadonlyMap<number, Trouble>;
}

const sampling: fc.Arbitrary<SamplingParams> = fc.oneof(
  fc.constant(GREEDY),
  fc.record({
    temperature: fc.constantFrom(0.5, 1, 1.7),
    topP: fc.constantFrom(0.6, 1),
    topK: fc.constantFrom(0, 3),
    minP: fc.constantFrom(0, 0.1),
    seed: fc.bigInt({ min: 0n, max: 3n }),
  }),
);

/** However long drafts are made, and whatever of them is verified. */
const lengths: fc.Arbitrary<LengthPolicy> = fc.oneof(
  fc.constant(FIXED_LENGTH),
  fc.nat().map((seed) => new ErraticLength(seed)),
  fc.constant(null).map(
    () =>
      new AutoLength(
        new CostModel(
          [
            { rows: 1, ms: 10 },
            { rows: 5, ms: 12 },
          ],
          [{ rows: 1, ms: 0.5 }],
        ),
      ),
  ),
);

const scenarios: fc.Arbitrary<Scenario> = fc.integer({ min: 2, max: 7 }).chain((vocabSize) => {
  const token = fc.integer({ min: 0, max: vocabSize - 1 });
  return fc.record({
    target: fc.record({
      vocabSize: fc.constant(vocabSize),
      seed: fc.nat(),
      memory: fc.constantFrom(1, 2, 3, Number.POSITIVE_INFINITY),
    }),
    maxRows: fc.integer({ min: MAX_SEQUENCES, max: 24 }),
    requests: fc.array(
      fc.record({
        prompt: fc.array(token, { minLength: 1, maxLength: 14 }),
        sampling,
        maxTokens: fc.integer({ min: 1, max: 20 }),
        stopTokens: fc.array(token, { maxLength: 1 }),
        draftLimit: fc.integer({ min: 1, max: 6 }),
        lengths,
        drafter: fc.constantFrom(...DRAFTERS),
        joins: fc.nat(6),
        leavesAfter: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 4 }),
      }),
      { minLength: 1, maxLength: 7 },
    ),
    troubles: fc
      .array(fc.tuple(fc.nat(12), fc.constantFrom<Trouble>('abort while drafting', 'abort during the step', 'step fails')), {
        maxLength: 3,
      })
      .map((list) => new Map(list)),
  });
});

/** One drafter of a kind serves all its sequences; those that know the answer know it for one way of sampling. */
class Drafters {
  readonly all = new Map<string, CheckedDrafter>();
  readonly #nextLogits: NextLogits;
  readonly #vocabSize: number;
  /** Called when one is asked to draft. */
  onPropose: () => void = () => undefined;

  constructor(nextLogits: NextLogits, vocabSize: number) {
    this.#nextLogits = nextLogits;
    this.#vocabSize = vocabSize;
  }

  for({ drafter, sampling }: Request): CheckedDrafter | null {
    if (drafter === 'nobody') return null;
    const key = `${drafter} ${Object.values(sampling).join()}`;
    const known = this.all.get(key);
    if (known !== undefined) return known;
    const made = new CheckedDrafter(this.#make(drafter, sampling), () => this.onPropose());
    this.all.set(key, made);
    return made;
  }

  #make(name: Exclude<DrafterName, 'nobody'>, sampling: SamplingParams): Drafter {
    const knowing = { next: nextToken(this.#nextLogits, sampling), vocabSize: this.#vocabSize };
    switch (name) {
      case 'none':
        return new NoneDrafter();
      case 'ngram':
        return new NgramDrafter({ maxDraftTokens: 6, maxMatch: 3, minMatch: 1 });
      case 'oracle':
        return new OracleDrafter(knowing);
      case 'liar':
        return new LiarDrafter(knowing);
      case 'wrong-from':
        return new WrongFromDrafter({ ...knowing, wrongFrom: 2 });
      case 'throws in propose':
        return new ThrowingDrafter('propose', 4);
      case 'throws in observe':
        return new ThrowingDrafter('observe', 4);
    }
  }
}

/** Accepted draft tokens, over all runs: a property of drafts that are never accepted would hold of nothing. */
let acceptedInAll = 0;
let chunkedPrompts = 0;

async function run({ target: script, maxRows, requests, troubles }: Scenario): Promise<void> {
  const nextLogits = hashedLogits(script);
  const drafters = new Drafters(nextLogits, script.vocabSize);
  let attempt = 0;
  let controller = new AbortController();
  const target = new ScriptedTarget({
    vocabSize: script.vocabSize,
    nextLogits,
    maxRows,
    maxSequences: MAX_SEQUENCES,
    duringStep() {
      if (troubles.get(attempt) === 'step fails') throw new Error('the step failed');
      if (troubles.get(attempt) === 'abort during the step') controller.abort();
    },
  });
  drafters.onPropose = () => {
    if (troubles.get(attempt) === 'abort while drafting') controller.abort();
  };

  const waiting = [...requests].sort((a, b) => a.joins - b.joins);
  const running = new Map<Sequence, { readonly request: Request; rounds: number }>();
  while (waiting.length > 0 || running.size > 0) {
    while (waiting.length > 0 && running.size < MAX_SEQUENCES && (waiting[0]!.joins <= attempt || running.size === 0)) {
      const request = waiting.shift() as Request;
      const drafter = drafters.for(request);
      const limit = Math.min(request.draftLimit, drafter?.maxDraftTokens ?? 0);
      running.set(start(target, { ...request, draftLimit: limit }, limit === 0 ? null : drafter), { request, rounds: 0 });
    }
    controller = new AbortController();
    const sequences = [...running.keys()];
    try {
      const { sequences: outcomes } = await round(target, sequences, controller.signal);
      chunkedPrompts += outcomes.filter(({ promptRows, emitted }) => promptRows > 0 && emitted.length === 0).length;
    } catch (error) {
      if (!troubles.has(attempt)) throw error;
      for (const sequence of sequences) expectInOrder(sequence);
    }
    attempt++;
    for (const [sequence, state] of [...running]) {
      state.rounds++;
      const leaves = state.request.leavesAfter !== null && state.rounds >= state.request.leavesAfter;
      if (sequence.ending === null && !leaves) continue;
      const expected = expectedAnswer(nextLogits, state.request);
      if (sequence.ending !== null) expect(answer(sequence)).toEqual(expected);
      else expect(answer(sequence)).toEqual(expected.slice(0, sequence.emitted));
      acceptedInAll += sequence.rounds.reduce((sum, { accepted }) => sum + accepted, 0);
      sequence[Symbol.dispose]();
      running.delete(sequence);
    }
    expect(attempt, 'rounds').toBeLessThan(500);
  }
  expect(target.openCaches).toBe(0);
  for (const drafter of drafters.all.values()) {
    expect(drafter.openStates).toBe(0);
    expect(drafter.misuses).toEqual([]);
  }
}

it('answers as plain decoding does, greedy and sampled, with any drafters, company and trouble', async () => {
  await fc.assert(fc.asyncProperty(scenarios, run), { numRuns: 500 });
  expect(acceptedInAll).toBeGreaterThan(1000);
  expect(chunkedPrompts).toBeGreaterThan(50);
});
