import { describe, expect, it } from 'vitest';
import { acceptSynthetic } from '../../../src/decode/accept-synthetic.ts';

function run(draft: number[], kept: number, endsAfter = Number.POSITIVE_INFINITY) {
  const emitted: number[] = [];
  const acceptance = acceptSynthetic(
    draft,
    kept,
    (index) => 100 + index,
    (token) => emitted.push(token) === endsAfter,
  );
  return { emitted, acceptance };
}

describe('synthetic acceptance', () => {
  it('keeps so many stand-ins, then the target chooses', () => {
    const { emitted, acceptance } = run([1, 1, 1], 2);
    expect(emitted).toEqual([1, 1, 102]);
    expect(acceptance).toEqual({ evaluated: 3, accepted: 2, emitted: 3 });
  });

  it('keeps none, or all with a bonus', () => {
    expect(run([1, 1, 1], 0)).toEqual({ emitted: [100], acceptance: { evaluated: 1, accepted: 0, emitted: 1 } });
    expect(run([1, 1, 1], 3)).toEqual({ emitted: [1, 1, 1, 103], acceptance: { evaluated: 3, accepted: 3, emitted: 4 } });
  });

  it('ends where the answer ends', () => {
    expect(run([1, 1, 1], 2, 1)).toEqual({ emitted: [1], acceptance: { evaluated: 1, accepted: 1, emitted: 1 } });
  });
});
