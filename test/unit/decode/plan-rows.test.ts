import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planRows } from '../../../src/decode/plan-rows.ts';
import type { Sequence } from '../../../src/decode/sequence.ts';
import { placed } from './sequence-fixture.ts';

/** The plan by the sequences' places in the list: [known rows, draft rows], or null for those left out. */
function plan(sequences: readonly Sequence[], maxRows: number, maxPromptRows?: number): ([number, number] | null)[] {
  const plans = planRows(sequences, maxRows, maxPromptRows);
  return sequences.map((sequence) => {
    const found = plans.find((entry) => entry.sequence === sequence);
    return found === undefined ? null : [found.known, found.budget];
  });
}

const decoding = (limit = 4) => placed({ emitted: 1, limit }).sequence;
const inPrompt = (length: number, cached = 0) => placed({ prompt: length, cached }).sequence;

describe('the rows of a step', () => {
  it('are one and the draft for a sequence that decodes', () => {
    expect(plan([decoding()], 64)).toEqual([[1, 4]]);
    expect(plan([decoding()], 3)).toEqual([[1, 2]]);
    expect(plan([decoding()], 1)).toEqual([[1, 0]]);
  });

  it('are the prompt, in chunks when it is long, and no draft', () => {
    expect(plan([inPrompt(10)], 64)).toEqual([[10, 0]]);
    expect(plan([inPrompt(10)], 4)).toEqual([[4, 0]]);
    expect(plan([inPrompt(10, 8)], 4)).toEqual([[2, 0]]);
    const [chunk] = planRows([inPrompt(10)], 4);
    const [last] = planRows([inPrompt(10, 8)], 4);
    expect([chunk?.complete, last?.complete]).toEqual([false, true]);
  });

  it('go to sequences that decode before prompts, however long those are', () => {
    expect(plan([inPrompt(100), decoding(), decoding()], 16)).toEqual([
      [6, 0],
      [1, 4],
      [1, 4],
    ]);
  });

  it('of prompts that are told of are so many in a step at most, and others fill it', () => {
    const told = (length: number) => placed({ prompt: length, promptLogprobs: 0 }).sequence;
    expect(plan([told(200)], 256)).toEqual([[64, 0]]);
    expect(plan([told(40), told(40), inPrompt(100), told(40)], 256)).toEqual([[40, 0], [24, 0], [100, 0], null]);
    expect(planRows([told(200)], 256)[0]?.complete).toBe(false);
    expect(planRows([told(64)], 256)[0]?.complete).toBe(true);
  });

  it('go to prompts in order of arrival, but not all of them to one that cannot end in this step', () => {
    expect(plan([inPrompt(5), inPrompt(5), inPrompt(5)], 10)).toEqual([[5, 0], [5, 0], null]);
    expect(plan([inPrompt(5), inPrompt(5), inPrompt(5)], 8)).toEqual([
      [5, 0],
      [2, 0],
      [1, 0],
    ]);
    expect(plan([inPrompt(100), inPrompt(3), inPrompt(100)], 32)).toEqual([
      [22, 0],
      [3, 0],
      [7, 0],
    ]);
  });

  it('go to the oldest prompt when nobody behind wants them', () => {
    expect(plan([inPrompt(100), inPrompt(2)], 32)).toEqual([
      [30, 0],
      [2, 0],
    ]);
  });

  it('are bounded for prompts while others decode, and only then', () => {
    expect(plan([inPrompt(100), decoding()], 64, 8)).toEqual([
      [8, 0],
      [1, 4],
    ]);
    expect(plan([inPrompt(100), decoding()], 64, 0)).toEqual([
      [1, 0],
      [1, 4],
    ]);
    expect(plan([inPrompt(100)], 64, 8)).toEqual([[64, 0]]);
  });

  it('bring every prompt to its end, the oldest by half of what prompts get at the least', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 9, max: 64 }),
        fc.integer({ min: 1, max: 32 }),
        (lengths, others, maxRows, maxPromptRows) => {
          const prompts = lengths.map((prompt) => placed({ prompt }));
          const rest = Array.from({ length: others }, () => decoding());
          const least = others === 0 ? maxRows : maxPromptRows;
          let steps = 0;
          for (let left = prompts; left.length > 0; left = left.filter(({ sequence }) => sequence.uncached > 0)) {
            const plans = planRows([...left.map(({ sequence }) => sequence), ...rest], maxRows, maxPromptRows);
            const oldest = left[0]!;
            const given = plans.find(({ sequence }) => sequence === oldest.sequence)?.known ?? 0;
            expect(given).toBeGreaterThan(0);
            if (others === 0) expect(given).toBeGreaterThanOrEqual(Math.min(oldest.sequence.uncached, Math.ceil(least / 2)));
            for (const { cache, sequence } of left) {
              cache.length += plans.find((entry) => entry.sequence === sequence)?.known ?? 0;
            }
            expect(++steps).toBeLessThanOrEqual(lengths.reduce((sum, length) => sum + length, 0));
          }
        },
      ),
    );
  });

  it('give every sequence that decodes one of its own before any of them gets a draft', () => {
    expect(plan([decoding(), decoding(), decoding()], 3)).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
    ]);
  });

  it('are shared between drafts and prompts, all prompts counting as one draft', () => {
    expect(plan([decoding(8), inPrompt(50)], 8)).toEqual([
      [1, 3],
      [4, 0],
    ]);
    expect(plan([decoding(8), decoding(8), inPrompt(2), inPrompt(50)], 14)).toEqual([
      [1, 3],
      [1, 4],
      [2, 0],
      [3, 0],
    ]);
  });

  it.each([2, 50])('keep one for a prompt of %i tokens when there is but one to spare', (length) => {
    expect(plan([decoding(8), decoding(8), inPrompt(length)], 3)).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
    ]);
  });

  it('keep the shares of the sequences as even as can be', () => {
    expect(plan([decoding(8), decoding(8), decoding(8)], 12)).toEqual([
      [1, 3],
      [1, 3],
      [1, 3],
    ]);
    expect(plan([decoding(8), decoding(1), decoding(8)], 12)).toEqual([
      [1, 4],
      [1, 1],
      [1, 4],
    ]);
  });

  it('never are more than the step can take, and leave no sequence that decodes without', () => {
    const sequence = fc.oneof(
      fc.record({
        prompt: fc.integer({ min: 1, max: 30 }),
        emitted: fc.integer({ min: 1, max: 5 }),
        limit: fc.integer({ min: 1, max: 8 }),
      }),
      fc.record({ prompt: fc.integer({ min: 1, max: 30 }), emitted: fc.constant(0), limit: fc.constant(null) }),
    );
    fc.assert(
      fc.property(fc.array(sequence, { minLength: 1, maxLength: 8 }), fc.integer({ min: 8, max: 64 }), (states, maxRows) => {
        const sequences = states.map((state) => placed(state).sequence);
        const plans = planRows(sequences, maxRows);
        expect(plans.length).toBeGreaterThan(0);
        expect(new Set(plans.map(({ sequence }) => sequence)).size).toBe(plans.length);
        expect(plans.reduce((sum, { known, budget }) => sum + known + budget, 0)).toBeLessThanOrEqual(maxRows);
        for (const { sequence, known, budget, complete } of plans) {
          expect(known).toBeGreaterThan(0);
          expect(complete).toBe(known === sequence.uncached);
          expect(budget).toBeGreaterThanOrEqual(0);
          expect(budget).toBeLessThanOrEqual(sequence.emitted === 0 ? 0 : sequence.draftBudget().budget);
        }
        for (const sequence of sequences) {
          if (sequence.emitted > 0) expect(plans.some((entry) => entry.sequence === sequence)).toBe(true);
        }
      }),
    );
  });
});
