import { describe, expect, it } from 'vitest';
import { DraftLayout } from '../../../src/drafter/dflash/draft-layout.ts';

const MASK = 99;

describe('the rows of a draft', () => {
  it('are, for one sequence, its context and its block of anchor and masks', () => {
    const layout = new DraftLayout([{ contextRows: [4, 5], anchor: 7, budget: 3 }], MASK);
    expect(layout.contextRows).toEqual([4, 5]);
    expect(layout.blockIds).toEqual([7, MASK, MASK, MASK]);
    expect(layout.draftRows).toEqual([1, 2, 3]);
    expect(layout.firstDraft).toEqual([0]);
    // Two context rows without queries of their own, then the block; keys of the context stand before those of the block.
    expect(layout.queryRows(0)).toEqual([0, 0, 0, 1, 2, 3]);
    expect(layout.keyRows(0)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(layout.attended).toEqual([2, 3, 4, 5]);
  });

  it('are as many as are drafted where the anchor’s slot drafts, too', () => {
    const layout = new DraftLayout([{ contextRows: [4], anchor: 7, budget: 3 }], MASK, 0);
    expect(layout.blockIds).toEqual([7, MASK, MASK]);
    expect(layout.draftRows).toEqual([0, 1, 2]);
    expect(layout.queryRows(0)).toEqual([0, 0, 1, 2]);
    expect(layout.attended).toEqual([1, 2, 3]);
  });

  it('are kept apart for several sequences', () => {
    const layout = new DraftLayout(
      [
        { contextRows: [0, 1], anchor: 7, budget: 1 },
        { contextRows: [], anchor: 8, budget: 2 },
        { contextRows: [5], anchor: 9, budget: 0 },
      ],
      MASK,
    );
    expect(layout.contextRows).toEqual([0, 1, 5]);
    expect(layout.blockIds).toEqual([7, MASK, 8, MASK, MASK]);
    expect(layout.draftRows).toEqual([1, 3, 4]);
    expect(layout.firstDraft).toEqual([0, 1, 3]);
    expect([0, 1, 2].map((slot) => layout.queryRows(slot))).toEqual([[0, 0, 0, 1], [2, 3, 4], [0]]);
    expect([0, 1, 2].map((slot) => layout.keyRows(slot))).toEqual([[0, 1, 3, 4], [5, 6, 7], [2]]);
    expect(layout.attended).toEqual([2, 3, 4, 5, 6]);
  });

  it('have one that nobody uses where there would be none', () => {
    const absorbing = new DraftLayout([{ contextRows: [3], anchor: 7, budget: 0 }], MASK);
    expect(absorbing).toMatchObject({ contextRows: [3], blockIds: [MASK], attended: [0], draftRows: [0] });
    expect(absorbing.queryRows(0)).toEqual([0]);
    const drafting = new DraftLayout([{ contextRows: [], anchor: 7, budget: 1 }], MASK);
    expect(drafting).toMatchObject({ contextRows: [0], blockIds: [7, MASK], attended: [0, 1], draftRows: [1] });
    // The keys of the block stand behind that of the context row that stands in.
    expect(drafting.keyRows(0)).toEqual([1, 2]);
  });

  it('are two of the first for a slot without a sequence', () => {
    const layout = new DraftLayout([{ contextRows: [0], anchor: 7, budget: 1 }], MASK);
    expect([layout.queryRows(1), layout.keyRows(1)]).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  it('know what stands before them in their blocks, and before each draft', () => {
    const layout = new DraftLayout(
      [
        { contextRows: [], anchor: 7, budget: 2 },
        { contextRows: [0], anchor: 8, budget: 0 },
        { contextRows: [], anchor: 9, budget: 3 },
      ],
      MASK,
    );
    // A row of zeros is place 0, so that row i is place i + 1.
    expect(layout.rowsBefore(1)).toEqual([0, 1, 2, 0, 4, 5, 6]);
    expect(layout.rowsBefore(2)).toEqual([0, 0, 1, 0, 0, 4, 5]);
    expect(layout.anchors).toEqual([7, 9]);
    // Anchors first, then the drafts: 2 and 3 are the first sequence's, 4 to 6 the other's.
    expect(layout.draftsBefore).toEqual([0, 2, 1, 4, 5]);
  });
});
