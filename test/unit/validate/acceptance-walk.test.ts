import { describe, expect, it } from 'vitest';
import { ownLabels, pooledAcceptance, sequenceAcceptance } from '../../../src/validate/evidence/acceptance-walk.ts';
import { lookupDrafts } from '../../../src/validate/evidence/lookup-baseline.ts';
import type { RecordedSequence } from '../../../src/validate/recording/recorded-sequence.ts';

function recorded(prompt: readonly number[], answer: readonly number[]): RecordedSequence {
  return { id: 'x', category: 'all', tokens: [...prompt, ...answer], answerStart: prompt.length, layers: [] };
}

/** Blocks of `slots` whose predictions behind each anchor are given; slot 0 predicts nothing. */
function predictions(slots: number, blocks: readonly (readonly number[])[]) {
  return {
    anchors: blocks.length,
    slots,
    ids: blocks.flatMap((block) => [-1, ...block]),
    probabilities: new Float32Array(blocks.length * slots),
  };
}

describe('the walk over anchors', () => {
  const sequence = recorded([7], [10, 11, 12, 13, 14]);

  it('visits the anchors that serving would, and counts what it emits', () => {
    // Behind token 10: two right, one wrong. Behind 13 (reached by 11, 12 and the target's own 13): the end.
    const result = sequenceAcceptance(
      predictions(4, [
        [11, 12, 99],
        [99, 99, 99],
        [99, 99, 99],
        [14, 99, 99],
      ]),
      ownLabels(sequence),
    );
    expect(result.prefixes).toEqual([2, 0, 0, 1]);
    expect(result).toMatchObject({ cycles: 2, emitted: 4, accepted: [2, 1, 0], inside: [2, 1, 1] });
    const pooled = pooledAcceptance([result]);
    expect(pooled.forcedTau).toBe(1 + 3 / 4);
    expect(pooled.servedTau).toBe(2);
    expect(pooled.acceptance).toEqual([1, 1, 0]);
  });

  it('cuts the last round at the end of the answer', () => {
    const right = (anchor: number) => [11, 12, 13, 14, 15].slice(anchor, anchor + 3);
    const result = sequenceAcceptance(predictions(4, [0, 1, 2, 3].map(right)), ownLabels(sequence));
    expect(result.emitted).toBe(4);
    expect(result.cycles).toBe(1);
    expect(result.labelled).toEqual([4, 3, 2]);
    expect(result.right).toEqual([4, 3, 2]);
  });

  it('does not count what is right behind a mistake', () => {
    const result = sequenceAcceptance(predictions(4, [[99, 12, 13]]), ownLabels(sequence));
    expect(result.prefixes).toEqual([0]);
    expect(result.right).toEqual([0, 1, 1]);
  });

  it('compares a shifted slot when asked to', () => {
    const early = predictions(4, [
      [12, 13, 14],
      [13, 14, 15],
      [14, 15, 16],
      [15, 16, 17],
    ]);
    expect(pooledAcceptance([sequenceAcceptance(early, ownLabels(sequence))]).forcedTau).toBe(1);
    expect(sequenceAcceptance(early, ownLabels(sequence), -1).right).toEqual([0, 3, 2]);
  });
});

describe('the lookup table', () => {
  it('drafts what followed the longest n-gram in the other sequences, not in its own', () => {
    const sequences = [recorded([1, 2], [3, 4, 5, 6]), recorded([1, 2], [3, 4, 8, 9]), recorded([4], [30, 31, 30, 31])];
    const [first, , third] = lookupDrafts(sequences, 3);
    expect(Array.from(first ?? [])).toEqual([-1, 4, 8, -1, 8, 9, -1, -1, -1]);
    expect(Array.from(third ?? [])).toEqual(new Array(9).fill(-1));
  });
});
