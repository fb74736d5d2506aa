import { describe, expect, it } from 'vitest';
import { decide, type Measurements } from '../../../src/validate/decide.ts';
import type { AcceptanceGain } from '../../../src/validate/evidence/evaluate-assumption.ts';
import type { Estimate } from '../../../src/validate/statistics/estimate.ts';
import { upperTail } from '../../../src/validate/statistics/student-t.ts';

function estimate(value: number, standardError = 0.02): Estimate {
  const p = upperTail(value / standardError, 79);
  return { value, standardError, low: value - 2 * standardError, high: value + 2 * standardError, p, clusters: 80 };
}

function gain(served: number, error = 0.05): AcceptanceGain {
  return {
    forcedTau: estimate(5 + served),
    servedTau: estimate(5 + served),
    forcedGain: estimate(served, error),
    servedGain: estimate(served, error),
    firstSlotGain: estimate(served / 10),
  };
}

function agreement(layer: number, tau: number, advantage: number, error = 0.05) {
  return { layer, tau: estimate(tau), advantage: estimate(advantage, error) };
}

const healthy: Measurements = {
  blockSize: 8,
  changes: [],
  probes: [],
  teacher: [agreement(0, 1.5, -3.5), agreement(1, 3, -2), agreement(2, 5, 0)],
  forms: [{ name: 'plain', fault: 'no-chat-template', gain: gain(-2) }],
  categories: { good: ['a'], bad: ['b'], goodTau: 6, badTau: 4, goodFirstSlot: 0.95, difference: estimate(2, 0.2), splits: 7 },
  servedTau: 5,
  forcedTau: 5,
  conditional: [0.9, 0.9, 0.88, 0.87, 0.86, 0.84, 0.8],
  accuracy: [0.9, 0.88, 0.84, 0.82, 0.81, 0.79, 0.74],
  decay: estimate(0.1),
  accuracyFall: estimate(1.15, 0.1),
  lookupRecall: estimate(0.96, 0.008),
  lookupTau: 2.4,
  overconfidence: estimate(-0.04, 0.01),
  normOffset: null,
  negativeNorms: 0,
  beyondHalf: [],
  fcNorms: [8, 8.5, 9, 9.5, 12],
  notFinite: [],
  maskTokenId: 9,
  eosTokenIds: [1],
  tapNames: ['layer 0', 'layer 2', 'layer 3', 'layer 4', 'layer 5'],
};

const faults = (changed: Partial<Measurements>) => decide({ ...healthy, ...changed }).findings.map(({ fault }) => fault);

const untrained = { lookupRecall: estimate(0.65, 0.02), servedTau: 1.8, forcedTau: 1.9 };

describe('the decision', () => {
  it('has no findings and no notes for a healthy drafter', () => {
    expect(decide(healthy)).toEqual({ findings: [], notes: [] });
  });

  it('names the layer of a wrong teacher', () => {
    const { findings } = decide({ ...healthy, teacher: [agreement(0, 1.5, -2), agreement(1, 5, 1.5), agreement(2, 3.5, 0)] });
    expect(findings.map(({ fault }) => fault)).toEqual(['teacher-intermediate']);
    expect(findings[0]?.evidence.join()).toContain('layer 1');
    expect(findings[0]?.effect).toBe(1.5);
  });

  it('does not take a small or doubtful agreement for a teacher', () => {
    expect(faults({ teacher: [agreement(0, 5.1, 0.1, 0.001), agreement(1, 5, 0)] })).toEqual([]);
    expect(faults({ teacher: [agreement(0, 5.5, 0.5, 0.4), agreement(1, 5, 0)] })).toEqual([]);
  });

  it('names a missing template', () => {
    for (const fault of ['no-chat-template', 'thinking-mode'] as const) {
      expect(faults({ ...untrained, forms: [...healthy.forms, { name: 'other', fault, gain: gain(1) }] })).toEqual([fault]);
    }
  });

  it('names data of one kind only where that kind goes well', () => {
    const split = { good: ['a'], bad: ['b', 'c'], goodTau: 7.5, badTau: 1.1, difference: estimate(6.4, 0.3), splits: 7 };
    expect(faults({ ...untrained, categories: { ...split, goodFirstSlot: 0.99 } })).toEqual(['data-one-category']);
    expect(faults({ ...untrained, categories: { ...split, goodFirstSlot: 0.6 } })).not.toContain('data-one-category');
  });

  it('tells other data from short training by how sure the drafter is', () => {
    expect(faults({ ...untrained, overconfidence: estimate(0.3, 0.02) })).toEqual(['data-not-target']);
    expect(faults({ ...untrained, overconfidence: estimate(-0.1, 0.02) })).toEqual(['under-trained']);
  });

  it('tells short training from weights without decay by the shape over slots', () => {
    expect(faults({ ...untrained, accuracyFall: estimate(1.3, 0.1) })).toEqual(['under-trained']);
    expect(faults({ ...untrained, accuracyFall: estimate(0.4, 0.1) })).toEqual(['gamma-large']);
  });

  it('names a small gamma where slot 1 is good and the decay steep', () => {
    const steep = {
      decay: estimate(0.6, 0.05),
      conditional: [0.95, 0.92, 0.83, 0.68, 0.58, 0.44, 0.3],
      servedTau: 4.1,
      forcedTau: 4.3,
      lookupRecall: estimate(0.98, 0.005),
    };
    expect(faults(steep)).toEqual(['gamma-small']);
    expect(faults({ ...steep, decay: estimate(0.6, 0.4) })).toEqual([]);
    expect(faults({ ...steep, ...untrained })).toEqual(['under-trained']);
  });

  it('says nothing of training where the evidence is thin', () => {
    expect(faults({ lookupRecall: estimate(0.8, 0.08) })).toEqual([]);
    expect(faults({ lookupRecall: { ...estimate(0.8), standardError: Number.NaN } })).toEqual([]);
  });

  it('stops at weights that are no numbers', () => {
    expect(faults({ notFinite: ['fc.weight'], ...untrained })).toEqual(['weights-broken']);
  });

  it('only notes a tap that was never used, and a mask that stops', () => {
    const probe = {
      ...gain(0.02, 0.01),
      probe: 'tap 4 (layer 5) zeroed',
      fault: 'tap-unseen' as const,
      prompts: 20,
      servedTau: 5,
      forcedTau: 5,
    };
    const unused = { ...healthy, fcNorms: [8, 8.5, 9, 9.5, 2], probes: [probe], maskTokenId: 1 };
    const { findings, notes } = decide(unused);
    expect(findings).toEqual([]);
    expect(notes.map(({ note }) => note.slice(0, 20))).toEqual(['tap 4 (layer 5) is n', 'the mask token 1 is ']);
    const used = { ...probe, forcedGain: estimate(-0.9, 0.05) };
    expect(decide({ ...unused, maskTokenId: 9, probes: [used] }).notes).toEqual([]);
  });

  it('finds a tap whose columns are zero, and advises to look where they were lost', () => {
    const { findings, notes } = decide({ ...healthy, fcNorms: [8, 8.5, 0, 9.5, 12] });
    expect(findings).toMatchObject([
      { fault: 'tap-unseen', confidence: 1, advice: expect.stringContaining('tap 2 (layer 3) were lost') },
    ]);
    expect(findings[0]?.evidence[0]).toContain('tap 2 (layer 3) are all zero');
    expect(notes).toEqual([]);
  });

  it('finds norms whose weights are differences from one, before all else', () => {
    const m = { ...healthy, normOffset: { gain: gain(3), p: 0.0001 }, negativeNorms: 0.5, fcNorms: [8, 8.5, 0, 9.5, 12] };
    expect(decide(m).findings).toMatchObject([{ fault: 'norm-offset', effect: 3 }, { fault: 'tap-unseen' }]);
  });

  it('notes that 16-bit floats would cost', () => {
    const half = { ...gain(-1, 0.1), probe: 'taps in 16-bit floats', fault: null, prompts: 12, servedTau: 4, forcedTau: 4 };
    expect(decide({ ...healthy, probes: [half] }).notes.map(({ note }) => note)).toEqual([expect.stringContaining('float16')]);
    expect(decide({ ...healthy, probes: [{ ...half, ...gain(0, 0.1), servedTau: 5, forcedTau: 5 }] }).notes).toEqual([]);
  });
});
