import { describe, expect, it } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { RoundRecord } from '../../../src/core/speculation-record.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { answerOf, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });

function total(rounds: readonly RoundRecord[], key: keyof RoundRecord): number {
  return rounds.reduce((sum, round) => sum + round[key], 0);
}

describe('what observers are told', () => {
  it('of steps adds up to what is said of requests', async () => {
    const drafter = new WrongFromDrafter({ next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB, wrongFrom: 2 });
    const { engine, recorder, target } = openEngine({ nextLogits, drafter, draftTokens: 3, maxSequences: 3, maxRows: 12 });
    const asked = Array.from({ length: 7 }, (_, i) =>
      request(
        Array.from({ length: 1 + i * 5 }, (_, position) => position % VOCAB),
        { maxTokens: 1 + i * 3, ignoreEos: true, drafter: i === 4 ? 'none' : null },
      ),
    );
    const answers = await Promise.all(asked.map((one) => answerOf(engine.generate(one, NEVER))));

    expect(recorder.steps).toHaveLength(target.steps);
    const stepRounds = recorder.steps.flatMap(({ rounds }) => rounds);
    const requestRounds = answers.flatMap(({ finish }) => finish.speculation.rounds);
    expect(stepRounds).toHaveLength(requestRounds.length);
    for (const key of ['drafted', 'evaluated', 'accepted', 'emitted'] as const) {
      expect(total(stepRounds, key), key).toBe(total(requestRounds, key));
    }
    expect(total(stepRounds, 'accepted')).toBeGreaterThan(0);
    expect(recorder.steps.reduce((sum, { emitted }) => sum + emitted, 0)).toBe(
      answers.reduce((sum, { finish }) => sum + finish.completionTokens, 0),
    );
    expect(recorder.steps.reduce((sum, { promptRows }) => sum + promptRows, 0)).toBe(
      asked.reduce((sum, { promptTokens }) => sum + promptTokens.length, 0),
    );
    expect(recorder.steps.map(({ promptRows, decodeRows }) => promptRows + decodeRows)).toEqual(target.stepRows);
    for (const { sequences } of recorder.steps) expect(sequences).toBeGreaterThan(0);

    const reasons = new Map<string, number>();
    for (const { finish } of answers) {
      for (const [reason, count] of Object.entries(finish.speculation.noDraft)) {
        reasons.set(reason, (reasons.get(reason) ?? 0) + count);
      }
    }
    for (const [reason, count] of reasons) {
      expect(
        stepRounds.filter(({ drafted, shortBy }) => drafted === 0 && shortBy === reason),
        reason,
      ).toHaveLength(count);
    }
    expect(stepRounds.filter(({ drafted }) => drafted === 0)).toHaveLength([...reasons.values()].reduce((a, b) => a + b, 0));
  });

  it('of ends is what the readers are told, before they are', async () => {
    const { engine, recorder } = openEngine({ nextLogits });
    const asked = request([1, 2, 3], { maxTokens: 9, ignoreEos: true });
    for await (const event of engine.generate(asked, NEVER)) {
      if (event.type === 'finish') expect(recorder.finishes).toEqual([{ request: asked, finish: event }]);
    }
    expect(recorder.finishes).toHaveLength(1);
  });

  it('of one request: the prompt is no round, and its completion is one token more than its rounds emitted', async () => {
    const { engine, recorder } = openEngine({ nextLogits, draftTokens: 2 });
    const { finish, pieces } = await answerOf(engine.generate(request([5, 6, 7, 8], { maxTokens: 9, ignoreEos: true }), NEVER));
    expect(finish.completionTokens).toBe(1 + total(finish.speculation.rounds, 'emitted'));
    expect(finish.speculation).toMatchObject({ drafter: 'oracle', maxDraftTokens: 2, drafterError: null });
    expect(pieces).toHaveLength(1 + finish.speculation.rounds.length);
    expect(recorder.steps[0]).toMatchObject({ promptRows: 4, decodeRows: 0, emitted: 1, rounds: [], sequences: 1 });
    expect(recorder.steps[1]).toMatchObject({ promptRows: 0, decodeRows: 3, emitted: 3 });
    const { queueMs, firstTokenMs, totalMs } = finish.timing;
    expect(queueMs).toBeLessThanOrEqual(firstTokenMs!);
    expect(firstTokenMs).toBeLessThanOrEqual(totalMs);
  });

  it('of the first token is when it came, not the last', async () => {
    const DELAY_MS = 10;
    const { engine } = openEngine({
      nextLogits,
      drafter: null,
      duringStep: (step) => (step === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, DELAY_MS))),
    });
    const { finish } = await answerOf(engine.generate(request([5], { maxTokens: 4, ignoreEos: true }), NEVER));
    expect(finish.timing.totalMs - finish.timing.firstTokenMs!).toBeGreaterThan(2 * DELAY_MS);
  });
});
