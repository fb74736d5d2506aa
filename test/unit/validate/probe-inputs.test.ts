import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/app-error.ts';
import { type Assumption, layerTap } from '../../../src/validate/probe/assumption.ts';
import { blockBias, contextBias } from '../../../src/validate/probe/attention-bias.ts';
import { counterfactuals } from '../../../src/validate/probe/counterfactuals.ts';
import { roundToHalf } from '../../../src/validate/probe/round-to-half.ts';
import { readPrompts, takeEvenly } from '../../../src/validate/recording/read-prompts.ts';

const visible = (bias: Float32Array, columns: number) =>
  Array.from({ length: bias.length / columns }, (_, row) =>
    Array.from(bias.subarray(row * columns, (row + 1) * columns), (value) => (value === 0 ? '1' : '.')).join(''),
  );

describe('what a block sees', () => {
  const shape = { anchors: 2, slots: 2, context: 5, answerStart: 3, edge: 0 };
  const full = { causal: false, window: null };
  const contextOf = (changed: object, attention: { causal: boolean; window: number | null }) => {
    const bias = new Float32Array(20);
    contextBias({ ...shape, ...changed }, attention, bias);
    return visible(bias, 5);
  };

  it('is the context strictly before its anchor', () => {
    expect(contextOf({}, full)).toEqual(['111..', '111..', '1111.', '1111.']);
  });

  it('has one row more or less at a moved edge', () => {
    expect(contextOf({ edge: 1 }, full)).toEqual(['1111.', '1111.', '11111', '11111']);
    expect(contextOf({ edge: -1 }, full)).toEqual(['11...', '11...', '111..', '111..']);
  });

  it('begins where the window of the slot does', () => {
    expect(contextOf({}, { causal: true, window: 3 })).toEqual(['.11..', '..1..', '..11.', '...1.']);
  });

  it('is its own block: all of it, what lies behind, or what is near', () => {
    const blockOf = (attention: { causal: boolean; window: number | null }) => {
      const bias = new Float32Array(9);
      blockBias({ ...shape, anchors: 1, slots: 3 }, attention, bias);
      return visible(bias, 3);
    };
    expect(blockOf(full)).toEqual(['111', '111', '111']);
    expect(blockOf({ causal: true, window: null })).toEqual(['1..', '11.', '111']);
    expect(blockOf({ causal: false, window: 2 })).toEqual(['11.', '111', '.11']);
  });
});

describe('the catalogue', () => {
  const base: Assumption = {
    taps: [0, 2, 5].map(layerTap),
    maskTokenId: 9,
    blockSize: 8,
    blockShift: 0,
    contextEdge: 0,
    attention: [{ causal: false, window: null }],
    rope: { theta: 1e4, dims: 32, scaling: { type: 'default' } },
    tapPrecision: 'f32',
  };
  const facts = { targetLayers: 8, targetRope: base.rope, maskCandidates: [7, 9], tokenName: (id: number) => `t${id}` };
  const all = counterfactuals(base, facts);
  const taps = (fault: string) =>
    all
      .filter((c) => c.fault === fault)
      .map(({ assumption }) => assumption.taps.map((tap) => (tap.kind === 'layer' ? tap.layer : tap.kind)));

  it('changes one thing at a time, and nothing twice', () => {
    const keys = all.map(({ assumption, slotShift }) => JSON.stringify([assumption, slotShift]));
    expect(new Set(keys).size).toBe(keys.length);
    for (const { assumption, slotShift, name } of all) {
      const changed = Object.keys(base).filter(
        (key) => JSON.stringify(assumption[key as keyof Assumption]) !== JSON.stringify(base[key as keyof Assumption]),
      );
      expect(changed.length + (slotShift === 0 ? 0 : 1), name).toBe(1);
    }
  });

  it('moves all taps by one within the target', () => {
    expect(taps('layer-ids-off-by-one')).toEqual([
      [-1, 1, 4],
      [1, 3, 6],
    ]);
    const high = counterfactuals({ ...base, taps: [0, 7].map(layerTap) }, facts);
    expect(high.filter((c) => c.fault === 'layer-ids-off-by-one')).toHaveLength(1);
    expect(high.some((c) => c.fault === 'final-tap-norm')).toBe(true);
  });

  it('orders taps in every way that a swap, a turn or a sort gives', () => {
    expect(taps('layer-ids-order')).toEqual([
      [5, 2, 0],
      [2, 5, 0],
      [5, 0, 2],
      [2, 0, 5],
      [0, 5, 2],
    ]);
  });

  it('silences each tap', () => {
    expect(taps('tap-unseen')).toEqual([
      ['zero', 2, 5],
      [0, 'zero', 5],
      [0, 2, 'zero'],
    ]);
  });
});

describe('rounding to 16 bits', () => {
  it('keeps what fits, rounds to even, and overflows', () => {
    const values = Float32Array.of(1, -0.5, 2049, 2051, 65504, 65520, 1e-8, 2 ** -24, 0.1);
    roundToHalf(values);
    expect(Array.from(values)).toEqual([1, -0.5, 2048, 2052, 65504, Number.POSITIVE_INFINITY, 0, 2 ** -24, 0.0999755859375]);
  });
});

describe('prompt files', () => {
  const write = (text: string) => {
    const file = join(mkdtempSync(join(tmpdir(), 'prompts-')), 'prompts.jsonl');
    writeFileSync(file, text);
    return file;
  };
  const all = { limit: null, seed: 0 };

  it('have messages or a prompt, with or without names', () => {
    const file = write('{"prompt":"a"}\n\n{"id":"x","category":"c","messages":[{"role":"user","content":"b"}]}\n');
    expect(readPrompts(file, all)).toEqual([
      { id: 'line-1', category: 'all', messages: [{ role: 'user', content: 'a' }] },
      { id: 'x', category: 'c', messages: [{ role: 'user', content: 'b' }] },
    ]);
  });

  it.each([
    ['{"prompt":"a"}\n{oops', /JSON in line 2/],
    ['{"prompt":"a"}\n{"text":"b"}', /line 2/],
    ['{"prompt":"a"}', /at least 2 prompts/],
    ['{"id":"x","prompt":"a"}\n\n{"id":"x","prompt":"b"}', /different ids.*x in lines 1 and 3/],
    ['{"prompt":"a"}\n{"id":"line-1","prompt":"b"}', /different ids.*line-1 in lines 1 and 2/],
  ])('are refused by line when wrong', (text, message) => {
    expect(() => readPrompts(write(text), all)).toThrow(message);
    expect(() => readPrompts(write(text), all)).toThrow(AppError);
  });

  it('are cut evenly over categories, and otherwise by seed', () => {
    const prompts = ['a', 'a', 'a', 'b', 'b', 'c'].map((category, i) => ({ id: String(i), category, messages: [] }));
    expect(takeEvenly(prompts, 4).map(({ id }) => id)).toEqual(['0', '3', '5', '1']);
    const file = write(prompts.map(({ id, category }) => JSON.stringify({ id, category, prompt: id })).join('\n'));
    const taken = (seed: number) => readPrompts(file, { limit: 3, seed }).map(({ id }) => id);
    expect(taken(0)).toEqual(['0', '3', '5']);
    expect(taken(5)).toEqual(taken(5));
    expect(new Set([1, 2, 3, 4, 5].map((seed) => taken(seed).join())).size).toBeGreaterThan(1);
  });
});
