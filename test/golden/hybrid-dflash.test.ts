/** A DFlash drafter on a hybrid target: whatever of its drafts is accepted, the answer is the one without any. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import type { CommittedRows, Drafter, DraftRequest, DraftState, Proposal } from '../../src/drafter/drafter.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { DflashPair } from './open-dflash.ts';
import { speculate } from './speculate.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const TARGET = join(FIXTURES, 'qwen3_5-nested');
const { cases } = JSON.parse(readFileSync(join(TARGET, 'golden.json'), 'utf8')) as {
  readonly cases: readonly { readonly prompt: readonly TokenId[]; readonly greedy: readonly TokenId[] }[];
};
const LAYERS = 8;

let pair: DflashPair;

beforeAll(async () => {
  // The fixture's drafter has the target's sizes but for its depth; what it was trained for does not matter here.
  const temporary = new TemporaryFolder();
  const folder = join(temporary.path, 'drafter');
  cpSync(join(FIXTURES, 'dflash-trained'), folder, { recursive: true });
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, num_target_layers: LAYERS }));
  pair = await DflashPair.open(folder, TARGET, temporary);
});

afterAll(async () => {
  await pair[Symbol.asyncDispose]();
});

class CountedState implements DraftState {
  readonly inner: DraftState;
  observed = 0;

  constructor(inner: DraftState) {
    this.inner = inner;
  }

  observe(rows: CommittedRows): void {
    this.observed += rows.tokens.length;
    this.inner.observe(rows);
  }

  rewind(length: number): void {
    this.inner.rewind(length);
  }

  [Symbol.dispose](): void {
    this.inner[Symbol.dispose]();
  }
}

/** DFlash's own drafts with their first tokens made right, and the next one wrong. */
class PartlyRight implements Drafter {
  readonly kind = 'dflash';
  readonly maxDraftTokens: number;
  readonly taps: readonly number[];
  readonly #inner: Drafter;
  readonly #text: readonly TokenId[];
  readonly #right: (round: number) => number;
  #round = 0;

  constructor(inner: Drafter, text: readonly TokenId[], right: (round: number) => number) {
    this.maxDraftTokens = inner.maxDraftTokens;
    this.taps = inner.taps;
    this.#inner = inner;
    this.#text = text;
    this.#right = right;
  }

  open(): DraftState {
    return new CountedState(this.#inner.open());
  }

  async propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    const inner = requests.map((request) => ({ ...request, state: (request.state as CountedState).inner }));
    const proposals = await this.#inner.propose(inner, signal);
    return proposals.map(({ tokens }, i) => {
      if (tokens.length === 0) return { tokens };
      const right = this.#right(this.#round++);
      const next = ((requests[i] as DraftRequest).state as CountedState).observed + 1;
      return {
        tokens: tokens.map((token, slot) => {
          const truth = this.#text[next + slot] ?? token;
          if (slot < right) return truth;
          return slot === right ? (truth + 1) % 272 : token;
        }),
      };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

it.each([0, 1, 2, 3, 4, 5, 6, 7, 'all in turn'] as const)(
  'answers plainly with %s draft tokens accepted a round',
  async (pattern) => {
    for (const { prompt, greedy } of cases) {
      const right = (round: number) => (pattern === 'all in turn' ? (round * 5) % 8 : pattern);
      const drafter = new PartlyRight(pair.drafter, [...prompt, ...greedy], right);
      const run = await speculate(pair.target, drafter, prompt, { maxTokens: greedy.length, stopTokens: [], draftPastEnd: 0 });
      expect(run.output).toEqual(greedy);
      const full = run.rounds.slice(0, -1).filter(({ drafted }) => drafted === drafter.maxDraftTokens);
      expect(full.map(({ accepted }) => accepted)).toEqual(full.map((_, round) => right(round)));
    }
  },
);

it('answers plainly with the drafts as they are', async () => {
  for (const { prompt, greedy } of cases) {
    const run = await speculate(pair.target, pair.drafter, prompt, {
      maxTokens: greedy.length,
      stopTokens: [],
      draftPastEnd: 0,
    });
    expect(run.output).toEqual(greedy);
    expect(run.rounds.some(({ drafted }) => drafted > 0)).toBe(true);
  }
});
