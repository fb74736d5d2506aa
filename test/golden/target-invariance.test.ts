import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import type { SequenceCache } from '../../src/target/target.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const F32 = ['llama-tied', 'llama-rope3', 'qwen2-bias', 'qwen3-untied', 'qwen3-bf16', 'qwen3-yarn', 'dflash-target'];
const QUANTISED = ['llama-tied', 'qwen2-bias', 'qwen3-untied'];
const TARGETS: readonly (readonly [string, WeightFormat])[] = [
  ...F32.map((name) => [name, 'f32'] as const),
  ...QUANTISED.flatMap((name) => [[name, 'int8'] as const, [name, 'int4'] as const]),
];
const TAPS = [1, 3];

/** Everything that a target computed for one row: its logits, and the tapped outputs behind them. */
type Row = Float32Array;

/** Draws that are the same in every run of the tests. */
function generator(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function tokensOf(seed: number, length: number, vocab: number): TokenId[] {
  const draw = generator(seed);
  return Array.from({ length }, () => draw(vocab));
}

/** Appends tokens of several sequences in one step. */
async function append(target: OnnxTarget, spans: readonly (readonly [SequenceCache, readonly TokenId[]])[]): Promise<Row[][]> {
  const result = await target.step(spans.map(([cache, tokens]) => ({ cache, tokens, logitsFrom: 0 })));
  return spans.map(([, tokens], span) =>
    tokens.map((_, row) => {
      const parts = [result.logits(span, row)];
      for (const tap of result.taps.values()) {
        const width = target.facts.hiddenSize;
        const first = (result.firstRow(span) + row) * width;
        parts.push(tap.data.subarray(first, first + width));
      }
      return Float32Array.from(parts.flatMap((part) => [...part]));
    }),
  );
}

/** Every bit of every row. */
function expectSame(actual: readonly Row[], expected: readonly Row[], what: string): void {
  expect(actual.length, what).toBe(expected.length);
  for (const [row, values] of actual.entries()) {
    const same = Buffer.from(values.buffer).equals(Buffer.from(expected[row]!.buffer));
    expect(same, `${what}: row ${row} is the same to the bit`).toBe(true);
  }
}

/** Cuts a list into parts of drawn lengths. */
function cut(tokens: readonly TokenId[], draw: (below: number) => number, longest: number): TokenId[][] {
  const parts: TokenId[][] = [];
  for (let start = 0; start < tokens.length; start += parts.at(-1)!.length) {
    parts.push(tokens.slice(start, start + 1 + draw(longest)));
  }
  return parts;
}

describe.each(TARGETS)('%s in %s', (name, format) => {
  const temporary = new TemporaryFolder();
  let target: OnnxTarget;
  /** Sequences of different lengths, and their rows, each computed alone and at once. */
  const sequences: { readonly tokens: readonly TokenId[]; readonly rows: readonly Row[] }[] = [];

  beforeAll(async () => {
    const folder = join(FIXTURES, name);
    ({ target } = await loadTestTarget({ folder, cacheDir: temporary.path, format, taps: TAPS }));
    for (const [seed, length] of [41, 30, 23, 12].entries()) {
      const tokens = tokensOf(seed, length, target.facts.vocabSize);
      using cache = target.openCache();
      const [rows] = await append(target, [[cache, tokens]]);
      sequences.push({ tokens, rows: rows! });
    }
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    await temporary[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  it('computes the same however a sequence is cut', async () => {
    const { tokens, rows } = sequences[0]!;
    const draw = generator(7);
    const ways = [
      tokens.map((token) => [token]),
      cut(tokens, () => 1, 2),
      cut(tokens, draw, 5),
      cut(tokens, draw, 16),
      // The attention kernel works on tiles of rows: here the last tile has a single one.
      cut(tokens, () => 16, 17),
      cut(tokens, () => 32, 33),
    ];
    for (const parts of ways) {
      using cache = target.openCache();
      const computed: Row[] = [];
      for (const part of parts) computed.push(...(await append(target, [[cache, part]]))[0]!);
      expectSame(computed, rows, `parts of ${parts.map((part) => part.length)}`);
    }
  });

  it('computes the same for a block of any size as for single rows', async () => {
    const { tokens, rows } = sequences[1]!;
    const prompt = 11;
    using cache = target.openCache();
    await append(target, [[cache, tokens.slice(0, prompt)]]);
    for (let size = 1; size <= 9; size++) {
      const [block] = await append(target, [[cache, tokens.slice(prompt, prompt + size)]]);
      expectSame(block!, rows.slice(prompt, prompt + size), `block of ${size}`);
      cache.truncate(prompt);
    }
  });

  it('computes the same beside other sequences, which come and go', async () => {
    const draw = generator(11);
    const pending = sequences.map(({ tokens }) => cut(tokens, draw, 6));
    const caches: (SequenceCache | undefined)[] = [];
    const computed: Row[][] = sequences.map(() => []);
    const together = new Set<number>();
    // A sequence joins every second step, and leaves when it is through.
    for (let step = 0; pending.some((parts) => parts.length > 0); step++) {
      const members = sequences.map((_, i) => i).filter((i) => step >= 2 * i && pending[i]!.length > 0);
      if (members.length === 0) continue;
      const spans = members.map((i) => {
        caches[i] ??= target.openCache();
        return [caches[i], pending[i]!.shift()!] as const;
      });
      const results = await append(target, spans);
      for (const [span, i] of members.entries()) computed[i]!.push(...results[span]!);
      together.add(members.length);
    }
    for (const cache of caches) cache?.[Symbol.dispose]();
    expect(together).toEqual(new Set([1, 2, 3, 4]));
    for (const [i, { rows }] of sequences.entries()) expectSame(computed[i]!, rows, `sequence ${i}`);
  });

  it('computes the same after rows were taken back, alone and beside a sequence that stays', async () => {
    const [first, second] = sequences as [(typeof sequences)[number], (typeof sequences)[number]];
    const wrong = tokensOf(99, 7, target.facts.vocabSize);
    using cache = target.openCache();
    using other = target.openCache();
    const computed: Row[] = [];
    const computedBeside: Row[] = [];
    for (const [index, part] of cut(first.tokens, generator(5), 4).entries()) {
      const beside = second.tokens.slice(2 * index, 2 * index + 2);
      const length = cache.length;
      if (beside.length > 0) {
        computedBeside.push(
          ...(
            await append(target, [
              [cache, wrong],
              [other, beside],
            ])
          )[1]!,
        );
      } else {
        await append(target, [[cache, wrong]]);
      }
      cache.truncate(length);
      computed.push(...(await append(target, [[cache, part]]))[0]!);
    }
    expectSame(computed, first.rows, 'the sequence cut back');
    expectSame(computedBeside, second.rows.slice(0, computedBeside.length), 'the sequence that stayed');
  });
});

/** 1 for rows that point the same way, near 0 for rows that have nothing to do with each other. */
function cosine(a: Row, b: Row): number {
  const dot = (x: Row, y: Row) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

describe.each(QUANTISED)('%s, quantised', (name) => {
  // The weights are random, so that nothing evens out what rounding does, unlike in a trained model.
  it.each([
    ['int8', 0.99],
    ['int4', 0.65],
  ] as const)('in %s stays near the float weights', async (format, least) => {
    await using temporary = new TemporaryFolder();
    const golden = JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8'));
    const prompt: TokenId[] = golden.cases[2].prompt;
    const computed: Row[][] = [];
    for (const weights of ['f32', format] as const) {
      const loaded = await loadTestTarget({ folder: join(FIXTURES, name), cacheDir: temporary.path, format: weights });
      await using target = loaded.target;
      using cache = target.openCache();
      computed.push((await append(target, [[cache, prompt]]))[0]!);
    }
    const [exact, rounded] = computed as [Row[], Row[]];
    const likeness = exact.map((row, i) => cosine(row, rounded[i]!));
    const mean = likeness.reduce((sum, value) => sum + value, 0) / likeness.length;
    expect(mean).toBeGreaterThan(least);
    // The same numbers would mean that nothing was quantised.
    expect(mean).toBeLessThan(0.999999);
  });
});
