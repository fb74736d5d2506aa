import { describe, expect, it } from 'vitest';
import type { RoundRecord } from '../../../src/core/speculation-record.ts';
import { ShadowDraft } from '../../../src/decode/shadow-draft.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';

const served = (accepted: number, drafted = 4): RoundRecord => {
  return { drafted, evaluated: Math.min(accepted + 1, drafted), accepted, emitted: accepted + 1 };
};

function shadow(): ShadowDraft {
  const drafter = new NgramDrafter();
  return new ShadowDraft('b', drafter, drafter.open(), 4);
}

describe('a shadow draft', () => {
  it('is decided in its round when the target said enough', () => {
    const one = shadow();
    one.expect(2, [5, 6, 9]);
    expect(one.settle([1, 2, 5, 6, 7], false, served(2))).toEqual([
      { shadow: 'b', drafted: 3, evaluated: 3, accepted: 2, emitted: 3, served: served(2) },
    ]);
    expect(one.settle([1, 2, 5, 6, 7, 8], false, served(0))).toEqual([]);
  });

  it('that goes further than the verified draft waits for what the target says next, and is scored against its own round', () => {
    const one = shadow();
    one.expect(1, [5, 6, 7]);
    expect(one.settle([1, 5], false, served(0))).toEqual([]);
    one.expect(2, [6, 8]);
    expect(one.settle([1, 5, 6], false, served(0, 1))).toEqual([]);
    one.expect(3, []);
    expect(one.settle([1, 5, 6, 7], false, served(0, 2))).toEqual([
      { shadow: 'b', drafted: 2, evaluated: 2, accepted: 1, emitted: 2, served: served(0, 1) },
    ]);
    // All of it accepted: it would have had a token of the target's behind it.
    expect(one.settle([1, 5, 6, 7, 4], false, served(0))).toEqual([
      { shadow: 'b', drafted: 3, evaluated: 3, accepted: 3, emitted: 4, served: served(0) },
    ]);
  });

  it('is cut off by the end of the answer, as a verified one is', () => {
    const one = shadow();
    one.expect(1, [5, 6, 7, 8]);
    expect(one.settle([1, 5, 6], true, served(1))).toEqual([
      { shadow: 'b', drafted: 4, evaluated: 2, accepted: 2, emitted: 2, served: served(1) },
    ]);
  });

  it('of a round that was given up is replaced by the next one', () => {
    const one = shadow();
    one.expect(1, [9]);
    one.expect(1, [5]);
    expect(one.settle([1, 5, 6], false, served(1))).toMatchObject([{ drafted: 1, accepted: 1 }]);
  });
});
