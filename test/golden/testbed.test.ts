import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acceptanceStatistics } from '../../src/core/acceptance-statistics.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { loadChatTemplate } from '../../src/text/chat-template.ts';
import { loadTokenizer } from '../../src/text/tokenizer.ts';
import expected from './fixtures/testbed-acceptance/expected.json' with { type: 'json' };
import { DflashPair } from './open-dflash.ts';
import { type SpeculativeRun, speculateAll } from './speculate.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'testbed');
const TARGET = join(FOLDER, 'target');

interface Prompt {
  readonly id: string;
  readonly category: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

const prompts = readFileSync(join(FOLDER, 'prompts.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line): Prompt => JSON.parse(line));

/** More than any answer needs. In the reference every block is whole, also the one in which the answer ends. */
const LIMITS = { maxTokens: 128, stopTokens: expected.stop_ids, draftPastEnd: 7 };
/** Of the figures in the fixture. */
const DIGITS = 4;

let pair: DflashPair;
const runs = new Map<string, SpeculativeRun>();
const promptIds = new Map<string, readonly number[]>();

beforeAll(async () => {
  pair = await DflashPair.open(join(FOLDER, 'drafter'), TARGET);
  const [tokenizer, template] = await Promise.all([loadTokenizer(TARGET), loadChatTemplate(TARGET)]);
  for (const { id, messages } of prompts) {
    promptIds.set(id, tokenizer.encode(template.render(messages, { addGenerationPrompt: true }), { addSpecialTokens: true }));
  }
  const answers = await speculateAll(pair.target, pair.drafter, [...promptIds.values()], LIMITS);
  for (const [i, { id }] of prompts.entries()) runs.set(id, answers[i]!);
});

afterAll(async () => {
  await pair[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Tokens emitted in each round, the first token left out, over the number of rounds. */
function tau(chosen: readonly SpeculativeRun[]): number {
  const emitted = chosen.flatMap(({ rounds }) => rounds.map((round) => round.emitted));
  return sum(emitted) / emitted.length;
}

describe('the trained pair of the testbed', () => {
  it.each(expected.golden)('answers $id with the reference’s ids, and its rounds', (golden) => {
    const run = runs.get(golden.id)!;
    expect(promptIds.get(golden.id)).toEqual(golden.prompt_ids);
    expect(run.output.slice(0, expected.max_new_tokens)).toEqual(golden.greedy_ids);
    // These were cut off at a limit; the last round before it is a whole one here.
    const rounds = golden.accepted.length - 1;
    expect(run.rounds.slice(0, rounds).map(({ accepted }) => accepted)).toEqual(golden.accepted.slice(0, rounds));
    expect(run.rounds.slice(0, rounds).map(({ emitted }) => emitted)).toEqual(golden.emitted.slice(0, rounds));
  });

  it('emits as many tokens a round over all prompts as the reference', () => {
    const all = [...runs.values()];
    expect(all).toHaveLength(80);
    expect(all.flatMap(({ rounds }) => rounds)).toHaveLength(expected.as_served.cycles);
    expect(tau(all)).toBeCloseTo(expected.as_served.tau, DIGITS);
    const macro = sum(all.map((run) => tau([run]))) / all.length;
    expect(macro).toBeCloseTo(expected.as_served.tau_macro, DIGITS);
  });

  it.each(Object.entries(expected.as_served.tau_by_category))('emits as many in %s: %d', (category, reference) => {
    const members = prompts.filter((prompt) => prompt.category === category).map(({ id }) => runs.get(id)!);
    expect(members).toHaveLength(10);
    expect(tau(members)).toBeCloseTo(reference, DIGITS);
  });

  it('accepts as often at each place of a block', () => {
    const all = [...runs.values()].map(({ rounds }) => rounds);
    // The reference counts only slots that lie inside the answer.
    const places = expected.as_served.acceptance_by_position.map((_, place) => {
      const accepted = all.flat().filter((round) => round.accepted > place).length;
      const inside = all.flatMap((rounds) => {
        const lengths = rounds.map(({ emitted }) => emitted);
        return lengths.filter((_, round) => sum(lengths.slice(round)) > place);
      });
      return accepted / inside.length;
    });
    for (const [place, share] of places.entries()) {
      expect(share, `slot ${place + 1}`).toBeCloseTo(expected.as_served.acceptance_by_position[place]!, DIGITS);
    }
    expect(acceptanceStatistics(all, 7).emittedPerStep).toBeCloseTo(tau([...runs.values()]), 12);
  });
});
