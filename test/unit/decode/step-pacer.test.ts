import { describe, expect, it } from 'vitest';
import { StepPacer } from '../../../src/decode/step-pacer.ts';

/** A machine on which steps cost so much. */
function machine({ decodeMs, rowMs }: { readonly decodeMs: number; readonly rowMs: number }) {
  return (promptRows: number, decodes: boolean) => (decodes ? decodeMs : 0) + promptRows * rowMs;
}

describe('the rows of prompts beside running answers', () => {
  it('are few before anything is known', () => {
    expect(new StepPacer(100).promptRows()).toBe(16);
  });

  it.each([
    { decodeMs: 20, rowMs: 2, rows: 40 },
    { decodeMs: 50, rowMs: 1, rows: 50 },
    { decodeMs: 90, rowMs: 2, rows: 45 },
    { decodeMs: 300, rowMs: 5, rows: 60 },
    { decodeMs: 0.5, rowMs: 0.1, rows: 995 },
  ])('fill what a step of $decodeMs ms leaves at $rowMs ms a row, or as much again', ({ decodeMs, rowMs, rows }) => {
    const pacer = new StepPacer(100);
    const cost = machine({ decodeMs, rowMs });
    pacer.observe(256, false, cost(256, false));
    pacer.observe(0, true, cost(0, true));
    for (let step = 0; step < 30; step++) {
      const promptRows = pacer.promptRows();
      expect(promptRows).toBeLessThanOrEqual(rows);
      pacer.observe(promptRows, true, cost(promptRows, true));
    }
    expect(pacer.promptRows()).toBe(rows);
  });

  it('follow a machine that becomes slower, and faster again', () => {
    const pacer = new StepPacer(100);
    pacer.observe(0, true, 20);
    const settle = (rowMs: number) => {
      for (let step = 0; step < 40; step++) pacer.observe(32, true, 20 + 32 * rowMs);
      return pacer.promptRows();
    };
    expect(settle(1)).toBeCloseTo(80, -1);
    expect(settle(4)).toBeCloseTo(20, -1);
    expect(settle(1)).toBeCloseTo(80, -1);
  });

  it('are some however slow the machine is, so that prompts come to their end', () => {
    const pacer = new StepPacer(10);
    pacer.observe(64, false, 6400);
    pacer.observe(0, true, 500);
    expect(pacer.promptRows()).toBe(16);
  });

  it('are not judged by a prompt of a few rows, which pays for the whole step', () => {
    const pacer = new StepPacer(100);
    pacer.observe(100, false, 100);
    pacer.observe(0, true, 20);
    for (let step = 0; step < 20; step++) pacer.observe(2, true, 40);
    expect(pacer.promptRows()).toBe(80);
  });
});
