import { describe, expect, it } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { Tokenizer } from '../../../src/text/tokenizer.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { byteLevelDefinition } from '../text/tokenizer-definitions.ts';
import { answerOf, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });

/** Independently of what is tested: exponentials of the whole row, and a sort of it. */
function say(prefix: readonly number[], token: number, temperature: number) {
  const row = [...nextLogits(prefix)];
  const weights = row.map((logit) => Math.exp(logit / temperature));
  const order = [...row.keys()].sort((a, b) => row[b]! - row[a]! || a - b);
  return { probability: weights[token]! / weights.reduce((a, b) => a + b, 0), rank: order.indexOf(token) };
}

describe('a trace', () => {
  it.each([
    ['greedy', GREEDY, 1],
    ['sampled', { ...GREEDY, temperature: 0.7, seed: 3n }, 0.7],
  ])(
    'tells of each round what was drafted, what the target said of it, and what came of it (%s)',
    async (_, sampling, temperature) => {
      const drafter = new WrongFromDrafter({
        next: nextToken(nextLogits, sampling),
        vocabSize: VOCAB,
        wrongFrom: 2,
        maxDraftTokens: 4,
      });
      const { engine } = openEngine({ nextLogits, drafter });
      const prompt = [1, 2, 3];
      const asked = request(prompt, { maxTokens: 22, ignoreEos: true, sampling, trace: true });
      const { tokens, finish } = await answerOf(engine.generate(asked, NEVER));
      const { trace = [] } = finish;
      expect(trace).toHaveLength(finish.speculation.rounds.length);
      expect(trace.flatMap(({ emitted }) => emitted.map(({ token }) => token))).toEqual(tokens.slice(1));
      expect(new Set(trace.map(({ end }) => end))).toEqual(new Set(['rejected', 'whole']));
      const sequence = [...prompt, ...tokens];
      for (const [i, round] of trace.entries()) {
        const { drafted, evaluated, accepted } = finish.speculation.rounds[i]!;
        const prefix = sequence.slice(0, round.position + 1);
        expect(round.anchor).toBe(prefix.at(-1));
        expect(round.drafted).toHaveLength(drafted);
        for (const [slot, { token, targetProbability, outcome, confidence }] of round.drafted.entries()) {
          expect(confidence).toBeNull();
          expect(outcome).toBe(slot < accepted ? 'accepted' : slot < evaluated ? 'rejected' : 'discarded');
          if (outcome === 'discarded') expect(targetProbability).toBeNull();
          else
            expect(targetProbability).toBeCloseTo(
              say([...prefix, ...sequence.slice(prefix.length, prefix.length + slot)], token, temperature).probability,
              10,
            );
        }
        for (const [slot, { token, targetProbability }] of round.emitted.entries()) {
          expect(targetProbability).toBeCloseTo(
            say(sequence.slice(0, prefix.length + slot), token, temperature).probability,
            10,
          );
        }
        const rejected = round.drafted.findIndex(({ outcome }) => outcome === 'rejected');
        expect(round.rejectedRank).toBe(
          rejected < 0
            ? null
            : say(sequence.slice(0, prefix.length + rejected), round.drafted[rejected]!.token, temperature).rank,
        );
      }
      expect(trace.at(-1)?.shortBy).toBe('near-max-tokens');
    },
  );

  it('has the confidence of a drafter that gives one, and is not there unless it was asked for', async () => {
    const repeats = hashedLogits({ vocabSize: VOCAB, seed: 2, memory: 1 });
    const { engine } = openEngine({ nextLogits: repeats, drafter: new NgramDrafter() });
    const asked = request([1, 2, 3], { maxTokens: 400, ignoreEos: true });
    const { finish } = await answerOf(engine.generate({ ...asked, trace: true }, NEVER));
    const drafted = finish.trace?.flatMap((round) => round.drafted) ?? [];
    expect(drafted.length).toBeGreaterThan(10);
    for (const { confidence } of drafted) expect(confidence).toBeGreaterThan(0);
    expect((await answerOf(engine.generate(asked, NEVER))).finish).not.toHaveProperty('trace');
  });

  it('says which part of the answer an anchor lies in, one that the prompt has opened too', async () => {
    const { engine: plain } = openEngine({ nextLogits });
    const asked = request([1, 2, 3], { maxTokens: 30, ignoreEos: true, trace: true });
    const { tokens, finish } = await answerOf(plain.generate(asked, NEVER));
    const start = asked.promptTokens.length;
    // An anchor, so that the mark itself is looked at; not the first one.
    const last = finish.trace?.slice(1, -1).find(({ anchor, position }) => tokens.indexOf(anchor) === position - start);
    const close = last?.anchor as number;
    class Marked extends Tokenizer {
      override tokenId(token: string): number | null {
        return (
          new Map([
            ['<think>', 2],
            ['</think>', close],
          ]).get(token) ?? null
        );
      }
    }
    const { engine } = openEngine({ nextLogits, parts: { tokenizer: new Marked(byteLevelDefinition(), {}, '') } });
    const { trace = [] } = (await answerOf(engine.generate(asked, NEVER))).finish;
    expect(trace.map(({ phase }) => phase)).toEqual(
      trace.map(({ position }) => (position <= last!.position ? 'reasoning' : 'content')),
    );
    expect(new Set(trace.map(({ phase }) => phase)).size).toBe(2);
  });

  it('changes no token and no round', async () => {
    const { engine } = openEngine({ nextLogits });
    const asked = request([1, 2, 3], { maxTokens: 30, ignoreEos: true });
    const [plain, traced] = [
      await answerOf(engine.generate(asked, NEVER)),
      await answerOf(engine.generate({ ...asked, trace: true }, NEVER)),
    ];
    expect(traced.tokens).toEqual(plain.tokens);
    expect(traced.finish.speculation).toEqual(plain.finish.speculation);
  });
});
