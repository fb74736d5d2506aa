import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '../../src/core/app-error.ts';
import { PooledCache } from '../../src/model/kv-cache.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'llama-tied');
const CONTEXT = 16;
const PROMPT = [154, 3, 77, 41, 5, 9, 200, 100, 31, 8, 64, 12, 90, 55];

const temporary = new TemporaryFolder();
let target: OnnxTarget;

beforeAll(async () => {
  const options = { folder: FOLDER, cacheDir: temporary.path, taps: [1], maxSequences: 2, maxRows: 20 };
  ({ target } = await loadTestTarget({ ...options, maxContext: CONTEXT }));
});

afterAll(async () => {
  await target[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

/** Copies of all keys and values. */
function contents(cache: PooledCache): number[][] {
  return [...cache.tensors.keys, ...cache.tensors.values].map((tensor) => [...tensor.data]);
}

async function refusal(call: Promise<unknown>): Promise<AppError> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AppError);
  return error as AppError;
}

describe('a span that does not fit its context', () => {
  it('is refused with both numbers, and no cache has changed', async () => {
    using full = target.openCache();
    using beside = target.openCache();
    await target.step([
      { cache: full, tokens: PROMPT, logitsFrom: PROMPT.length },
      { cache: beside, tokens: PROMPT.slice(0, 3), logitsFrom: 3 },
    ]);
    const before = [contents(full), contents(beside)];
    const overflow = target.step([
      { cache: beside, tokens: [7], logitsFrom: 0 },
      { cache: full, tokens: [1, 2, 3], logitsFrom: 0 },
    ]);
    const error = await refusal(overflow);
    expect(error.code).toBe('context_length_exceeded');
    expect(error.details).toEqual({ maxContext: CONTEXT, length: CONTEXT + 1 });
    expect(error.message).toContain(`Expected at most ${CONTEXT} positions in a sequence, got ${CONTEXT + 1}`);
    expect([full.length, beside.length]).toEqual([PROMPT.length, 3]);
    expect([contents(full), contents(beside)]).toEqual(before);
  });

  it('leaves the target able to fill the context to its last position', async () => {
    using cache = target.openCache();
    using again = target.openCache();
    await target.step([{ cache, tokens: PROMPT, logitsFrom: PROMPT.length }]);
    await refusal(target.step([{ cache, tokens: [1, 2, 3], logitsFrom: 0 }]));
    // One row at the very end: the row that pads it has a place of its own behind the context.
    await target.step([{ cache, tokens: [1], logitsFrom: 0 }]);
    const last = await target.step([{ cache, tokens: [2], logitsFrom: 0 }]);
    const logits = last.logits(0, 0).slice();
    expect(cache.length).toBe(CONTEXT);
    expect((await refusal(target.step([{ cache, tokens: [3], logitsFrom: 0 }]))).code).toBe('context_length_exceeded');

    const whole = await target.step([{ cache: again, tokens: [...PROMPT, 1, 2], logitsFrom: PROMPT.length }]);
    expect([...whole.logits(0, PROMPT.length + 1)]).toEqual([...logits]);
  });
});

describe('a step that was aborted', () => {
  it('leaves the caches as they were, and the target serves on', async () => {
    using cache = target.openCache();
    const first = await target.step([{ cache, tokens: PROMPT.slice(0, 5), logitsFrom: 4 }]);
    const greedy = first.greedy(0, 4);
    cache.truncate(4);
    await expect(target.step([{ cache, tokens: [9, 9], logitsFrom: 0 }], AbortSignal.abort())).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(cache.length).toBe(4);
    const repeated = await target.step([{ cache, tokens: PROMPT.slice(4, 5), logitsFrom: 0 }]);
    expect(repeated.greedy(0, 0)).toBe(greedy);
  });
});

describe('steps that cannot be computed', () => {
  it('are refused before anything is touched', async () => {
    using cache = target.openCache();
    expect((await refusal(target.step([]))).message).toContain('Expected 1 to 2 spans of at most 20 rows, got 0 of 0');
    expect((await refusal(target.step([{ cache, tokens: [], logitsFrom: 0 }]))).message).toContain('at least one token');
    const rows = new Array(21).fill(1);
    expect((await refusal(target.step([{ cache, tokens: rows, logitsFrom: 0 }]))).message).toContain('got 1 of 21');
    expect(cache.length).toBe(0);
  });

  it('are refused while another is in flight', async () => {
    using cache = target.openCache();
    using other = target.openCache();
    const first = target.step([{ cache, tokens: PROMPT, logitsFrom: 0 }]);
    expect((await refusal(target.step([{ cache: other, tokens: [1], logitsFrom: 0 }]))).message).toContain('one is in flight');
    await first;
    expect([cache.length, other.length]).toEqual([PROMPT.length, 0]);
  });
});

describe('caches', () => {
  it('are as many as sequences can be served, and come back when they are disposed of', async () => {
    const first = target.openCache();
    using second = target.openCache();
    expect(() => target.openCache()).toThrow('All 2 sequences are in use');
    first[Symbol.dispose]();
    using third = target.openCache();
    expect(third).toBeInstanceOf(PooledCache);
    expect(third.length).toBe(0);
    expect(() => second.truncate(1)).toThrow('Expected a length of 0 to 0, got 1');
    const gone = target.step([{ cache: first, tokens: [1], logitsFrom: 0 }]);
    expect((await refusal(gone)).code).toBe('disposed');
  });
});
