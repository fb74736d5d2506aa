/** Rows taken back from recurrent states: whatever was tried, what follows is the same to the bit as if it had not been. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { PooledCache } from '../../src/model/kv-cache.ts';
import { StateNotKeptError } from '../../src/model/state-not-kept-error.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'qwen3_5-nested');
const PROMPT: readonly TokenId[] = [154, 3, 77, 41, 5, 9, 200, 100, 31, 8, 64];
/** What the sequence goes on with: the accepted part of every block. */
const NEXT: readonly TokenId[] = [12, 90, 55, 210, 17, 33, 84, 140, 2, 71, 61, 19, 250, 6, 98, 44];
const WRONG: TokenId = 123;

const temporary = new TemporaryFolder();

afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
});

describe.each<WeightFormat>(['f32', 'int8', 'int4'])('in %s', (format) => {
  let target: OnnxTarget;
  /** Bits of the logits behind each of {@link NEXT}, and of the states there, of a sequence that went row by row. */
  const plain: { readonly logits: Buffer; readonly states: Buffer }[] = [];

  beforeAll(async () => {
    ({ target } = await loadTestTarget({ folder: FOLDER, cacheDir: temporary.path, format, taps: [2] }));
    using cache = target.openCache();
    await target.step([{ cache, tokens: PROMPT, logitsFrom: PROMPT.length }]);
    for (const token of NEXT) plain.push({ logits: await append(cache, token), states: statesOf(cache) });
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  async function append(cache: PooledCache, token: TokenId): Promise<Buffer> {
    const result = await target.step([{ cache, tokens: [token], logitsFrom: 0 }]);
    return bits(result.logits(0, 0));
  }

  async function prompted(): Promise<PooledCache> {
    const cache = target.openCache();
    await target.step([{ cache, tokens: PROMPT, logitsFrom: PROMPT.length }]);
    return cache;
  }

  /** The sequence has `at` of {@link NEXT}; the rest follows as if nothing else had ever been tried. */
  async function expectPlainFrom(cache: PooledCache, at: number, what: string): Promise<void> {
    expect(cache.length, what).toBe(PROMPT.length + at);
    for (let i = at; i < at + 2; i++) {
      const same = (await append(cache, NEXT[i]!)).equals(plain[i]!.logits);
      expect(same, `${what}: logits behind token ${i}`).toBe(true);
      expect(statesOf(cache).equals(plain[i]!.states), `${what}: states behind token ${i}`).toBe(true);
    }
  }

  it.each([1, 2, 3, 5, 8])('a block of %i rows, of which any number stays', async (size) => {
    for (let kept = 0; kept <= size; kept++) {
      using cache = await prompted();
      const block = NEXT.slice(0, size).map((token, i) => (i < kept ? token : WRONG));
      const result = await target.step([{ cache, tokens: block, logitsFrom: 0 }]);
      for (let row = 0; row < kept; row++) expect(bits(result.logits(0, row)).equals(plain[row]!.logits)).toBe(true);
      cache.truncate(PROMPT.length + kept);
      await expectPlainFrom(cache, kept, `${kept} of ${size}`);
    }
  });

  it('blocks of all sorts, one after the other, with plain steps between them', async () => {
    using cache = await prompted();
    let at = 0;
    for (const [size, kept] of [
      [4, 2],
      [5, 5],
      [1, 1],
      [3, 1],
      [1, 1],
      [6, 3],
    ] as const) {
      const block = NEXT.slice(at, at + size).map((token, i) => (i < kept ? token : WRONG));
      const result = await target.step([{ cache, tokens: block, logitsFrom: 0 }]);
      for (let row = 0; row < kept; row++) expect(bits(result.logits(0, row)).equals(plain[at + row]!.logits)).toBe(true);
      at += kept;
      cache.truncate(PROMPT.length + at);
    }
    await expectPlainFrom(cache, at, 'after all blocks');
  });

  it('beside other sequences, in steps that this one is not part of, and in one slot of many', async () => {
    using cache = await prompted();
    using beside = await prompted();
    using third = await prompted();
    await target.step([
      { cache: beside, tokens: [WRONG, WRONG], logitsFrom: 0 },
      { cache, tokens: [NEXT[0]!, NEXT[1]!, WRONG, WRONG], logitsFrom: 0 },
      { cache: third, tokens: [NEXT[0]!, WRONG, WRONG], logitsFrom: 0 },
    ]);
    cache.truncate(PROMPT.length + 2);
    beside.truncate(PROMPT.length);
    third.truncate(PROMPT.length + 1);
    // This step's record takes the place of the one before.
    const result = await target.step([
      { cache: third, tokens: [NEXT[1]!, NEXT[2]!, WRONG], logitsFrom: 0 },
      { cache: beside, tokens: [NEXT[0]!], logitsFrom: 0 },
    ]);
    expect(bits(result.logits(0, 1)).equals(plain[2]!.logits)).toBe(true);
    expect(bits(result.logits(1, 0)).equals(plain[0]!.logits)).toBe(true);
    third.truncate(PROMPT.length + 3);
    await expectPlainFrom(cache, 2, 'the sequence that waited');
    await expectPlainFrom(third, 3, 'the sequence that went on');
    await expectPlainFrom(beside, 1, 'the sequence that began anew');
  });

  it('a prompt in pieces of any size', async () => {
    for (const size of [1, 2, 3, 4, 7, PROMPT.length]) {
      using cache = target.openCache();
      for (let start = 0; start < PROMPT.length; start += size) {
        const tokens = PROMPT.slice(start, start + size);
        await target.step([{ cache, tokens, logitsFrom: tokens.length }]);
      }
      await expectPlainFrom(cache, 0, `pieces of ${size}`);
    }
  });

  it('a cache that was cut back twice, once to where the block began', async () => {
    using cache = await prompted();
    await target.step([{ cache, tokens: [NEXT[0]!, NEXT[1]!, WRONG, WRONG], logitsFrom: 0 }]);
    cache.truncate(PROMPT.length + 3);
    cache.truncate(PROMPT.length + 2);
    await expectPlainFrom(cache, 2, 'cut twice');
    using other = await prompted();
    await target.step([{ cache: other, tokens: [NEXT[0]!, WRONG, WRONG], logitsFrom: 0 }]);
    other.truncate(PROMPT.length + 2);
    other.truncate(PROMPT.length);
    await expectPlainFrom(other, 0, 'cut to the beginning of the block');
  });

  it('a cache that was cut to nothing, and one that another sequence had before', async () => {
    const first = await prompted();
    first.truncate(0);
    await target.step([{ cache: first, tokens: PROMPT, logitsFrom: PROMPT.length }]);
    await expectPlainFrom(first, 0, 'from the start');
    first[Symbol.dispose]();
    using second = await prompted();
    await expectPlainFrom(second, 0, 'from the pool');
  });

  it('a step that was given up, before it began or on its way', async () => {
    using cache = await prompted();
    await target.step([{ cache, tokens: [NEXT[0]!, WRONG, WRONG], logitsFrom: 0 }]);
    cache.truncate(PROMPT.length + 1);
    const abandoned = { cache, tokens: new Array<TokenId>(200).fill(WRONG), logitsFrom: 0 };
    await expect(target.step([abandoned], AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
    const controller = new AbortController();
    const step = target.step([abandoned], controller.signal);
    setImmediate(() => controller.abort());
    await expect(step).rejects.toMatchObject({ code: 'aborted' });
    await expectPlainFrom(cache, 1, 'after both');
  });
});

describe('rows that are further back than any state', () => {
  it('cannot be taken back, and the error says what can', async () => {
    const { target } = await loadTestTarget({ folder: FOLDER, cacheDir: temporary.path });
    await using _ = target;
    using cache = target.openCache();
    await target.step([{ cache, tokens: PROMPT, logitsFrom: PROMPT.length - 1 }]);
    expect(() => cache.truncate(5)).toThrow('Expected to cut the cache back to 11 or 0 positions');
    await target.step([{ cache, tokens: [1, 2, 3], logitsFrom: 0 }]);
    expect(() => cache.truncate(PROMPT.length - 1)).toThrow(StateNotKeptError);
    expect(() => cache.truncate(PROMPT.length - 1)).toThrow('Expected to cut the cache back to 11 to 14 or to 0 positions');
    expect(() => cache.truncate(PROMPT.length + 4)).toThrow('Expected a length of 0 to 14, got 15');
    expect(cache.length).toBe(PROMPT.length + 3);
    using other = target.openCache();
    await target.step([{ cache: other, tokens: [1], logitsFrom: 0 }]);
    expect(() => cache.truncate(PROMPT.length + 2)).toThrow('Expected to cut the cache back to 14 or 0 positions');
    cache.truncate(PROMPT.length + 3);
    expect(target.recurrent).toEqual({ bytesPerSequence: 2 * 6 * (3 * 128 + 4 * 16 * 16) * 4 });
  });
});

function bits(values: Float32Array): Buffer {
  return Buffer.from(values.slice().buffer);
}

function statesOf(cache: PooledCache): Buffer {
  const { windows, states } = cache.recurrent!.past!;
  return Buffer.concat([...windows, ...states].map(({ data }) => bits(data)));
}
