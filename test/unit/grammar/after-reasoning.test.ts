import { describe, expect, it } from 'vitest';
import { AfterReasoning } from '../../../src/grammar/after-reasoning.ts';
import type { LogitsProcessor } from '../../../src/sampling/logits-processor.ts';

const BEGIN = 8;
const END = 9;

/** Allows 1, 2, 3, … in this order. */
class Counting implements LogitsProcessor {
  next = 1;
  disposed = false;
  prepared: (readonly number[])[] = [];

  get ended(): boolean {
    return this.next > 4;
  }

  admit(draft: readonly number[]): number {
    const wrong = draft.findIndex((token, index) => token !== this.next + index);
    return wrong === -1 ? draft.length : wrong;
  }

  async prepare(draft: readonly number[]): Promise<void> {
    this.prepared.push(draft);
  }

  process(logits: Float32Array): void {
    for (let id = 0; id < logits.length; id++) if (id !== this.next) logits[id] = Number.NEGATIVE_INFINITY;
  }

  push(token: number): void {
    expect(token).toBe(this.next);
    this.next++;
  }

  [Symbol.dispose](): void {
    this.disposed = true;
  }
}

function allowed(processor: LogitsProcessor): number[] {
  const logits = new Float32Array(10);
  processor.process(logits);
  return [...logits.keys()].filter((id) => logits[id] === 0);
}

describe('after reasoning that the prompt has opened', () => {
  it('leaves the reasoning alone, and tells the other one of nothing but the rest', async () => {
    const inner = new Counting();
    const processor = new AfterReasoning(inner, { begin: null, end: END });
    expect(await processor.admit([7, 7, 7])).toBe(3);
    await processor.prepare([7, 7, 7]);
    expect(inner.prepared).toEqual([]);
    for (const token of [7, 3]) {
      expect(allowed(processor)).toHaveLength(10);
      processor.push(token);
    }
    expect(await processor.admit([5, END, 1, 2, 7])).toBe(4);
    await processor.prepare([5, END, 1, 2]);
    expect(inner.prepared).toEqual([[1, 2]]);
    processor.push(5);
    processor.push(END);
    expect(allowed(processor)).toEqual([1]);
    processor.push(1);
    expect(await processor.admit([2, 3, 5])).toBe(2);
    expect(processor.ended).toBe(false);
    for (const token of [2, 3, 4]) processor.push(token);
    expect(processor.ended).toBe(true);
    processor[Symbol.dispose]();
    expect(inner.disposed).toBe(true);
  });

  it('admits a draft up to the closing token where the rest is wrong', async () => {
    const processor = new AfterReasoning(new Counting(), { begin: null, end: END });
    expect(await processor.admit([5, END, 2])).toBe(2);
    expect(await processor.admit([END])).toBe(1);
    expect(await processor.admit([])).toBe(0);
  });
});

describe('after reasoning that the answer may open', () => {
  it('rules the first token, but for the opening one', async () => {
    const inner = new Counting();
    const processor = new AfterReasoning(inner, { begin: BEGIN, end: END });
    await processor.prepare([]);
    expect(inner.prepared).toEqual([[]]);
    expect(allowed(processor)).toEqual([1, BEGIN]);
    expect(await processor.admit([1, 2, 2])).toBe(2);
    expect(await processor.admit([2])).toBe(0);
    expect(await processor.admit([BEGIN, 7, END, 1, 1])).toBe(4);
    processor.push(1);
    expect(allowed(processor)).toEqual([2]);
    expect(await processor.admit([BEGIN])).toBe(0);
  });

  it('waits for the end of reasoning that was opened', async () => {
    const inner = new Counting();
    const processor = new AfterReasoning(inner, { begin: BEGIN, end: END });
    await processor.prepare([BEGIN, 7]);
    expect(inner.prepared).toEqual([[]]);
    processor.push(BEGIN);
    expect(allowed(processor)).toHaveLength(10);
    processor.push(BEGIN);
    processor.push(END);
    await processor.prepare([1]);
    expect(inner.prepared).toEqual([[], [1]]);
    expect(allowed(processor)).toEqual([1]);
  });
});
