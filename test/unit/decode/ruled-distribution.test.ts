/** Over seeds, answers of drafted blocks are distributed as rules and sampling say: a definition, enumerated, is the reference. */
import { describe, expect, it } from 'vitest';
import type { SamplingParams } from '../../../src/core/sampling-params.ts';
import type { TokenId } from '../../../src/core/token.ts';
import { NO_RULES, type TokenRules } from '../../../src/core/token-rules.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import { decodeRound } from '../../../src/decode/round.ts';
import { Sequence } from '../../../src/decode/sequence.ts';
import { AnswerRules, type MakeProcessor } from '../../../src/engine/answer-rules.ts';
import { HistoryDrafter } from '../../support/history-drafter.ts';
import { ruledRow } from '../../support/plain-rules.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { ScriptedTarget } from '../../support/scripted-target.ts';
import { request } from '../engine/engine-fixture.ts';
import { NEVER_STOPS } from './sequence-fixture.ts';

const VOCAB = 4;
const NEVER = new AbortController().signal;
const LENGTH = 4;
const ANSWERS = 4000;
const TOGETHER = 16;
const PROMPT = [2, 0];
const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 21, memory: 2 });

/** Always the same draft, some of which comes true. */
class ConstantDrafter extends HistoryDrafter {
  readonly kind = 'constant';

  protected override draft(_tokens: readonly TokenId[], count: number): readonly TokenId[] {
    return [1, 3, 1].slice(0, count);
  }
}

/** min-p, then top-k, then top-p, as vLLM defines them, for rows without ties. */
function definition(row: Float32Array, { temperature, topP, topK, minP }: Omit<SamplingParams, 'seed'>): number[] {
  const weights = [...row].map((logit) => Math.exp(logit / temperature));
  const ranked = [...row.keys()].sort((a, b) => weights[b]! - weights[a]!);
  let kept = ranked.filter((id) => weights[id]! >= minP * weights[ranked[0]!]!);
  if (topK > 0) kept = kept.slice(0, topK);
  const mass = (ids: readonly number[]) => ids.reduce((sum, id) => sum + weights[id]!, 0);
  kept = kept.filter((_, rank) => rank === 0 || mass(kept.slice(0, rank)) < topP * mass(kept));
  return weights.map((weight, id) => (kept.includes(id) ? weight / mass(kept) : 0));
}

/** Probabilities of all answers that have one. */
function enumerate(rules: TokenRules, sampling: Omit<SamplingParams, 'seed'>): Map<string, number> {
  const found = new Map<string, number>();
  const extend = (answer: readonly TokenId[], probability: number) => {
    if (answer.length === LENGTH) {
      found.set(answer.join(), probability);
      return;
    }
    const row = ruledRow(nextLogits([...PROMPT, ...answer]), rules, PROMPT, answer, []);
    for (const [id, share] of definition(row, sampling).entries()) if (share > 0) extend([...answer, id], probability * share);
  };
  extend([], 1);
  return found;
}

async function drawn(make: MakeProcessor, sampling: Omit<SamplingParams, 'seed'>) {
  const target = new ScriptedTarget({ vocabSize: VOCAB, nextLogits, maxSequences: TOGETHER, maxRows: 64 });
  const drafter = new ConstantDrafter();
  const counts = new Map<string, number>();
  let accepted = 0;
  for (let first = 0; first < ANSWERS; first += TOGETHER) {
    const sequences = Array.from(
      { length: TOGETHER },
      (_, i) =>
        new Sequence({
          promptTokens: PROMPT,
          sampling: { ...sampling, seed: BigInt(first + i) },
          stopRule: NEVER_STOPS,
          maxTokens: LENGTH,
          limitedBy: 'max-tokens',
          cache: target.openCache(),
          drafting: { drafter, state: drafter.open(), limit: 3, lengths: FIXED_LENGTH },
          processor: make(),
        }),
    );
    for (;;) {
      const running = sequences.filter(({ ending }) => ending === null);
      if (running.length === 0) break;
      await decodeRound(target, running, NEVER);
    }
    for (const sequence of sequences) {
      const answer = sequence.tokens.slice(PROMPT.length).join();
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
      accepted += sequence.rounds.reduce((sum, round) => sum + round.accepted, 0);
      sequence[Symbol.dispose]();
    }
  }
  return { counts, accepted };
}

/** The 1e-6 quantile of chi-square, by Wilson and Hilferty's approximation. */
function chiSquareLimit(freedom: number): number {
  const spread = 2 / (9 * freedom);
  return freedom * (1 - spread + 4.753 * Math.sqrt(spread)) ** 3;
}

const SAMPLING = { temperature: 1.3, topP: 1, topK: 0, minP: 0 };
const PENALTIES = { repetitionPenalty: 1.4, frequencyPenalty: 0.5, presencePenalty: 0.3 };

describe('answers of drafted blocks are as often as their probability says', () => {
  it.each<[string, Partial<TokenRules>, Partial<typeof SAMPLING>]>([
    ['without rules', {}, {}],
    ['with penalties', PENALTIES, {}],
    ['with penalties and cuts', PENALTIES, { topK: 3, topP: 0.9, minP: 0.05 }],
    ['with a bias and forbidden words', { logitBias: new Map([[1, 0.8]]), badWords: [[1, 3], [2]] }, { temperature: 0.9 }],
    ['with allowed ids and a negative penalty', { allowedTokenIds: [1, 3, 0], frequencyPenalty: -0.6 }, { topP: 0.95 }],
  ])('%s', async (_, change, cuts) => {
    const rules = { ...NO_RULES, ...change };
    const sampling = { ...SAMPLING, ...cuts };
    const rulesOf = new AnswerRules({ vocabSize: VOCAB, eosTokenIds: [] }, null);
    using compiled = await rulesOf.compile(request(PROMPT, { rules }));
    const { counts, accepted } = await drawn(compiled.makeProcessor, sampling);
    const probabilities = enumerate(rules, sampling);
    for (const answer of counts.keys()) expect(probabilities.has(answer), answer).toBe(true);
    // Cells with few answers make one.
    const cells: { seen: number; expected: number }[] = [];
    const rare = { seen: 0, expected: 0 };
    for (const [answer, probability] of probabilities) {
      const cell = { seen: counts.get(answer) ?? 0, expected: probability * ANSWERS };
      if (cell.expected >= 5) cells.push(cell);
      else {
        rare.seen += cell.seen;
        rare.expected += cell.expected;
      }
    }
    if (rare.expected > 0) cells.push(rare);
    const chiSquare = cells.reduce((sum, { seen, expected }) => sum + (seen - expected) ** 2 / expected, 0);
    expect(cells.length).toBeGreaterThan(12);
    expect(chiSquare).toBeLessThan(chiSquareLimit(cells.length - 1));
    expect(accepted).toBeGreaterThan(ANSWERS / 10);
  });
});
