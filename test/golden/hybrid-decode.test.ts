/** Speculative decoding on a hybrid: whatever the drafts are worth, the answer is the one without any. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GREEDY } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { TokenLogprobs } from '../../src/core/token-logprobs.ts';
import { FIXED_LENGTH } from '../../src/decode/draft-length/fixed-length.ts';
import { decodeRound } from '../../src/decode/round.ts';
import { Sequence } from '../../src/decode/sequence.ts';
import type { CommittedRows, Drafter, DraftRequest, DraftState, Proposal } from '../../src/drafter/drafter.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { tokenLogprobs } from '../../src/sampling/token-logprobs.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { speculate, speculateAll } from './speculate.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'qwen3_5-nested');
const DRAFT_TOKENS = 7;
const { cases } = JSON.parse(readFileSync(join(FOLDER, 'golden.json'), 'utf8')) as {
  readonly cases: readonly { readonly prompt: readonly TokenId[]; readonly greedy: readonly TokenId[] }[];
};
const LIMITS = { maxTokens: cases[0]!.greedy.length, stopTokens: [], draftPastEnd: 0 };

const temporary = new TemporaryFolder();
let target: OnnxTarget;

beforeAll(async () => {
  ({ target } = await loadTestTarget({ folder: FOLDER, cacheDir: temporary.path, maxSequences: 3, maxRows: 40 }));
});

afterAll(async () => {
  await target[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

class SeenTokens implements DraftState {
  readonly tokens: TokenId[] = [];

  observe(rows: CommittedRows): void {
    expect(rows.position).toBe(this.tokens.length);
    this.tokens.push(...rows.tokens);
  }

  rewind(length: number): void {
    this.tokens.length = length;
  }

  [Symbol.dispose](): void {}
}

/** Knows the answers, and drafts them as far as it is told to. */
class Scripted implements Drafter {
  readonly kind = 'scripted';
  readonly maxDraftTokens = DRAFT_TOKENS;
  readonly taps = [];
  readonly #plan: (round: number) => DraftPlan;
  #round = 0;

  constructor(plan: (round: number) => DraftPlan) {
    this.#plan = plan;
  }

  open(): DraftState {
    return new SeenTokens();
  }

  async propose(requests: readonly DraftRequest[]): Promise<readonly Proposal[]> {
    return requests.map(({ state, anchor, budget }, index) => {
      if (budget === 0) return { tokens: [] };
      const { right, length } = this.#plan(this.#round++ + index);
      const seen = [...(state as SeenTokens).tokens, anchor];
      const known = cases.map(({ prompt, greedy }) => [...prompt, ...greedy]).find((all) => seen.every((t, i) => t === all[i]));
      const truth = known?.slice(seen.length, seen.length + Math.min(length, budget)) ?? [];
      return { tokens: truth.map((token, i) => (i < right ? token : (token + 1) % 250)) };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

interface DraftPlan {
  /** Leading tokens of the draft that are the target's own. */
  readonly right: number;
  readonly length: number;
}

const PLANS: readonly (readonly [string, (round: number) => DraftPlan])[] = [
  ['all right', () => ({ right: DRAFT_TOKENS, length: DRAFT_TOKENS })],
  ...Array.from({ length: DRAFT_TOKENS }, (_, right) => {
    return [`wrong from token ${right} on`, () => ({ right, length: DRAFT_TOKENS })] as const;
  }),
  ['of all lengths, right as far as the round says', (round) => ({ right: round % 5, length: (3 * round) % 8 })],
  ['made in every other round only', (round) => ({ right: 2, length: round % 2 === 0 ? 4 : 0 })],
];

describe.each(PLANS)('drafts that are %s', (_, plan) => {
  it.each(cases.map((_, index) => index))('leave the answer to prompt %i as it is', async (index) => {
    const { prompt, greedy } = cases[index]!;
    const run = await speculate(target, new Scripted(plan), prompt, LIMITS);
    expect(run.output).toEqual(greedy);
    for (const { drafted, accepted } of run.rounds) expect(accepted).toBeLessThanOrEqual(drafted);
  });

  it('leave the answers as they are when all are given at once', async () => {
    const prompts = cases.map(({ prompt }) => prompt);
    const runs = await speculateAll(target, new Scripted(plan), prompts, LIMITS);
    expect(runs.map(({ output }) => output)).toEqual(cases.map(({ greedy }) => greedy));
  });
});

it('accepts exactly the leading tokens that are right', async () => {
  const { prompt } = cases[1]!;
  const accepted = new Set<number>();
  for (const [, plan] of PLANS) {
    const { rounds } = await speculate(target, new Scripted(plan), prompt, LIMITS);
    for (const round of rounds) if (round.drafted === DRAFT_TOKENS) accepted.add(round.accepted);
  }
  expect([...accepted].sort()).toEqual(Array.from({ length: DRAFT_TOKENS + 1 }, (_, count) => count));
});

it('tells the logprobs of a prompt that takes several steps, and of drafted tokens, as computed token by token', async () => {
  const { prompt, greedy } = cases[1]!;
  const long = [...cases[0]!.prompt, ...cases[0]!.greedy, ...greedy, ...prompt].slice(-90);
  // Its answer is no text that the drafter knows; the one to the prompt itself is.
  for (const promptTokens of [long, prompt]) {
    const drafter = new Scripted((round) => ({ right: round % 5, length: DRAFT_TOKENS }));
    const sequence = new Sequence({
      promptTokens,
      sampling: GREEDY,
      stopRule: { push: () => null },
      maxTokens: 20,
      limitedBy: 'max-tokens',
      cache: target.openCache(),
      drafting: { drafter, state: drafter.open(), limit: DRAFT_TOKENS, lengths: FIXED_LENGTH },
      logprobs: 2,
      promptLogprobs: 2,
    });
    const told: TokenLogprobs[] = [];
    while (sequence.ending === null) {
      const { sequences } = await decodeRound(target, [sequence], new AbortController().signal);
      told.push(...(sequences[0]?.logprobs ?? []));
    }
    const expected: TokenLogprobs[] = [];
    using cache = target.openCache();
    for (const [i, token] of sequence.tokens.slice(0, -1).entries()) {
      const result = await target.step([{ cache, tokens: [token], logitsFrom: 0 }]);
      expected.push(tokenLogprobs(result.logits(0, 0), sequence.tokens[i + 1]!, 2));
    }
    expect([...sequence.promptLogprobs!, ...told]).toEqual(expected);
    if (promptTokens === prompt) expect(sequence.rounds.some(({ accepted }) => accepted > 1)).toBe(true);
    sequence[Symbol.dispose]();
  }
});
