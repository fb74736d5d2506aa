import { describe, expect, it } from 'vitest';
import type { SequenceAcceptance } from '../../../src/validate/evidence/acceptance-walk.ts';
import {
  accuracyFall,
  conditionalAccuracy,
  decayPerSlot,
  expectedGrowth,
  recommendedGamma,
  tauOfHealthyDecay,
} from '../../../src/validate/evidence/slot-profile.ts';
import { median } from '../../../src/validate/statistics/median.ts';

/** Sequences whose slots are right with these chances where all before are, with quotas in place of draws. */
function withChances(chances: readonly number[], sequences = 8, anchors = 120): readonly SequenceAcceptance[] {
  const drafts = chances.length;
  return Array.from({ length: sequences }, (_, s) => {
    const prefixes = Array.from({ length: anchors }, (_, a) => {
      let level = (((a * 37 + s * 11) % anchors) + 0.5) / anchors;
      let prefix = 0;
      for (const chance of chances) {
        if (level >= chance) break;
        level /= chance;
        prefix++;
      }
      return prefix;
    });
    const right = Array.from({ length: drafts }, (_, slot) => prefixes.filter((prefix) => prefix > slot).length);
    return { prefixes, right, labelled: new Array(drafts).fill(anchors), cycles: 1, emitted: 1, accepted: [], inside: [] };
  });
}

describe('the profile over slots', () => {
  it('counts a slot only where all before it were right', () => {
    const shares = conditionalAccuracy(withChances([0.8, 0.5, 0.5]));
    expect(shares[0]).toBeCloseTo(0.8, 1);
    expect(shares[1]).toBeCloseTo(0.5, 1);
    expect(shares[2]).toBeCloseTo(0.5, 1);
  });

  it('finds no decay in constant chances and a steep one where late slots were not learned', () => {
    expect(decayPerSlot(withChances([0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9])).value).toBeLessThan(0.15);
    const steep = decayPerSlot(withChances([0.95, 0.92, 0.83, 0.68, 0.58, 0.44, 0.3]));
    expect(steep.value).toBeGreaterThan(0.45);
    expect(steep.low).toBeGreaterThan(0.25);
  });

  it('is not misled by one odd slot', () => {
    expect(decayPerSlot(withChances([0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.4])).value).toBeLessThan(0.2);
  });

  it('measures the fall of accuracy in log-odds', () => {
    const fall = accuracyFall(withChances([0.9, 0.9, 0.9])).value;
    expect(fall).toBeCloseTo(Math.log(9) - Math.log(0.729 / 0.271), 1);
  });

  it('knows the published gammas', () => {
    expect([8, 10, 16].map(recommendedGamma)).toEqual([4, 5, 7]);
    expect(recommendedGamma(12)).toBeCloseTo(5.67, 2);
  });

  it('predicts what a healthy drafter with the same first slot reaches', () => {
    expect(tauOfHealthyDecay(0.5, 2)).toBeCloseTo(1.5, 12);
    expect(tauOfHealthyDecay(0.95, 8)).toBeGreaterThan(5);
    expect(tauOfHealthyDecay(0.95, 8)).toBeLessThan(7);
  });

  it('expects new slots to go on as the last two', () => {
    const growth = expectedGrowth(withChances([0.8, 0.8]), 4);
    expect(growth).toBeGreaterThan(0.45);
    expect(growth).toBeLessThan(0.64 * 0.85);
    expect(expectedGrowth(withChances([0.8, 0.8]), 3)).toBe(0);
  });

  it('takes the median of an even number between the middle two', () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBe(0);
  });
});
