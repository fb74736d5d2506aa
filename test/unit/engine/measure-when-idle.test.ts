import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CostModel } from '../../../src/decode/draft-length/cost-model.ts';
import { measureWhenIdle } from '../../../src/engine/measure-costs.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { answerOf, type EngineOptions, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });
const model = () => new CostModel([{ rows: 1, ms: 500 }], [{ rows: 1, ms: 500 }]);

/** An engine whose steps take, by a clock of its own, a millisecond for each row and as much again for some. */
function openTimed(disturbed: (step: number) => boolean = () => false, options: Partial<EngineOptions> = {}) {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const opened = openEngine({
    nextLogits,
    ...options,
    async duringStep(step, signal) {
      now += (disturbed(step) ? 2 : 1) * opened.target.stepRows[step]!;
      await options.duringStep?.(step, signal);
    },
  });
  return opened;
}

describe('costs that are measured while no request is served', () => {
  it('are those of the fastest runs, for so many sequences', async () => {
    const { engine, target } = openTimed((step) => step < 5);
    const costs = model();
    await engine.whenIdle(measureWhenIdle(target, 'oracle', 2, costs));
    expect([2, 4, 16].map((rows) => costs.stepMs(rows, 2))).toEqual([2, 4, 16]);
    expect(costs.draftMs(2, 2)).toBe(0);
    expect(Math.max(...target.stepRows)).toBe(16);
  });

  it('are measured again while runs are far apart, but not for ever', async () => {
    const { engine, target } = openTimed();
    await engine.whenIdle(measureWhenIdle(target, 'oracle', 1, model()));
    const calm = target.steps;
    let slower = 1;
    vi.mocked(performance.now).mockImplementation(() => {
      slower *= 1.5;
      return slower;
    });
    await engine.whenIdle(measureWhenIdle(target, 'oracle', 1, model()));
    expect(target.steps - calm).toBeGreaterThan(2 * calm);
  });

  it('give way to a request at once, and are measured behind it', async () => {
    let ask = (): void => undefined;
    let interrupted: AbortSignal | undefined;
    const { engine, target, recorder } = openEngine({
      nextLogits,
      duringStep(step, signal) {
        if (step !== 3) return;
        interrupted = signal;
        ask();
      },
    });
    const answered = new Promise<number>((resolve) => {
      ask = () => {
        void answerOf(engine.generate(request([1, 2, 3], { maxTokens: 4, ignoreEos: true }), NEVER)).then(() =>
          resolve(target.steps),
        );
      };
    });
    const costs = model();
    await engine.whenIdle(measureWhenIdle(target, 'oracle', 2, costs));
    expect(interrupted?.aborted).toBe(true);
    const own = recorder.steps.length;
    expect(own).toBeGreaterThan(0);
    expect(await answered).toBeLessThanOrEqual(4 + own + 1);
    expect(target.steps).toBeGreaterThan(4 + own);
    expect(costs.stepMs(2, 2)).toBeLessThan(100);
  });

  it('wait for a while without requests', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { engine } = openEngine({ nextLogits });
    let begun = false;
    const done = engine.whenIdle(async () => {
      begun = true;
    });
    for (let i = 0; i < 3; i++) {
      await vi.advanceTimersByTimeAsync(90);
      await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 4, ignoreEos: true }), NEVER));
    }
    await vi.advanceTimersByTimeAsync(90);
    expect(begun).toBe(false);
    await vi.advanceTimersByTimeAsync(20);
    await done;
    expect(begun).toBe(true);
  });

  it('stay as they were for more sequences than there is room for', async () => {
    const { engine, target } = openTimed(undefined, { maxSequences: 4, onPrepare: () => 1 });
    const costs = model();
    await target.prepare(2);
    await engine.whenIdle(measureWhenIdle(target, 'oracle', 2, costs));
    expect(costs.stepMs(2, 2)).toBe(500);
    expect(target.steps).toBe(0);
  });

  it('leave the engine as it was when the drafter throws', async () => {
    const drafter = new ThrowingDrafter('propose');
    const { engine, target } = openEngine({ nextLogits, drafter });
    await expect(engine.whenIdle(measureWhenIdle(target, drafter.kind, 2, model()))).rejects.toThrow();
    const { tokens } = await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 4, ignoreEos: true }), NEVER));
    expect(tokens).toHaveLength(4);
  });

  it('are given up when the engine ends', async () => {
    const { engine, target } = openEngine({
      nextLogits,
      duringStep(step) {
        if (step === 2) void engine[Symbol.asyncDispose]();
      },
    });
    const costs = model();
    await engine.whenIdle(measureWhenIdle(target, 'oracle', 2, costs));
    expect(costs.stepMs(2, 2)).toBe(500);
    await engine.whenIdle(() => Promise.reject(new Error('this is not to be begun any more')));
  });
});
