/** Which block size is named, for drafters whose chance by slot is known. */
import { describe, expect, it } from 'vitest';
import { evaluateAssumption } from '../../../src/validate/evidence/evaluate-assumption.ts';
import { searchCounterfactuals } from '../../../src/validate/evidence/search-counterfactuals.ts';
import { type Assumption, layerTap } from '../../../src/validate/probe/assumption.ts';
import type { DrafterProbe } from '../../../src/validate/probe/drafter-probe.ts';
import type { RecordedSequence } from '../../../src/validate/recording/recorded-sequence.ts';

const PROMPTS = 40;
const ANSWER = 400;
const WRONG = -1;

/** Tokens that all differ, so that no other label is right by accident. */
const SEQUENCES: readonly RecordedSequence[] = Array.from({ length: PROMPTS }, (_, i) => ({
  id: String(i),
  category: 'all',
  tokens: Array.from({ length: ANSWER + 1 }, (_, at) => i * 1000 + at),
  answerStart: 1,
  layers: [],
}));

function declaredWith(blockSize: number): Assumption {
  return {
    taps: [layerTap(1), layerTap(3)],
    maskTokenId: 0,
    blockSize,
    blockShift: 0,
    contextEdge: 0,
    attention: [{ causal: false, window: null }],
    rope: { dims: 8, theta: 1e4, scaling: { type: 'default' } },
    tapPrecision: 'f32',
  };
}

/** From 0 to 1, the same for the same numbers. */
function chance(...numbers: readonly number[]): number {
  let state = 1;
  for (const number of numbers) {
    state = Math.imul(state ^ number, 0x9e3779b1) >>> 0;
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b) >>> 0;
    state = (state ^ (state >>> 13)) >>> 0;
  }
  return state / 2 ** 32;
}

/** Right at slot k with `chanceAt(k)` whatever the block size, and never under any other change. */
function drafter(declared: Assumption, chanceAt: (slot: number) => number): DrafterProbe {
  const run: DrafterProbe['run'] = (sequence, assumption) => {
    const slots = assumption.blockSize;
    const known = JSON.stringify({ ...assumption, blockSize: 0 }) === JSON.stringify({ ...declared, blockSize: 0 });
    const anchors = sequence.tokens.length - sequence.answerStart - 1;
    const ids = Int32Array.from({ length: anchors * slots }, (_, at) => {
      const anchor = Math.floor(at / slots);
      const slot = at % slots;
      const right = known && slot > 0 && chance(Number(sequence.id), anchor, slot) < chanceAt(slot);
      return right ? (sequence.tokens[sequence.answerStart + anchor + slot] ?? WRONG) : WRONG;
    });
    return Promise.resolve({ anchors, slots, ids, probabilities: new Float32Array(anchors * slots) });
  };
  return { run } as DrafterProbe;
}

async function namesFor(blockSize: number, chanceAt: (slot: number) => number): Promise<string[]> {
  const declared = declaredWith(blockSize);
  const probe = drafter(declared, chanceAt);
  const { changes } = await searchCounterfactuals({
    probe,
    sequences: SEQUENCES,
    screening: SEQUENCES.slice(0, 12),
    declared,
    base: await evaluateAssumption(probe, SEQUENCES, declared, 0),
    facts: { targetLayers: 8, targetRope: declared.rope, maskCandidates: [], tokenName: String },
  });
  return changes.map(({ outcome }) => outcome.counterfactual.name);
}

describe('a drafter that is served with shorter blocks than it was trained with', () => {
  it('is told the size behind which it falls off', async () => {
    expect(await namesFor(4, (slot) => (slot < 8 ? 0.8 : 0.3))).toEqual(['block size 8']);
  });

  it('is told nothing when the trained size gains too little, though one beyond it would gain enough', async () => {
    // 1.75 tokens per round become 1.875 with the slot that was trained, and 1.94 with all behind it.
    expect(await namesFor(3, (slot) => (slot < 4 ? 0.5 : 0.354))).toEqual([]);
  });
});
