import { describe, expect, it } from 'vitest';
import type { FaultCode } from '../../../src/validate/diagnosis.ts';
import {
  helpfulChanges,
  LEAST_EFFECT,
  type ProbeOutcome,
  selectChange as selectHelpful,
  worthAllPrompts,
} from '../../../src/validate/evidence/select-change.ts';
import type { Assumption } from '../../../src/validate/probe/assumption.ts';
import type { Estimate } from '../../../src/validate/statistics/estimate.ts';
import { upperTail } from '../../../src/validate/statistics/student-t.ts';

const CLUSTERS = 80;

function selectChange(outcomes: readonly ProbeOutcome[], before: readonly number[] = []) {
  return selectHelpful(helpfulChanges(outcomes, before));
}

function estimate(value: number, standardError: number): Estimate {
  const p = upperTail(value / standardError, CLUSTERS - 1);
  return { value, standardError, low: value - 2 * standardError, high: value + 2 * standardError, p, clusters: CLUSTERS };
}

interface Made {
  readonly name?: string;
  readonly fault?: FaultCode;
  readonly gain: number;
  readonly error?: number;
  readonly firstSlot?: number;
  readonly shared?: number;
  readonly newSlots?: number;
  readonly preference?: number;
  readonly onAllPrompts?: boolean;
}

const BASE_TAU = 4;

function outcome(made: Made): ProbeOutcome {
  const error = made.error ?? 0.03;
  return {
    counterfactual: {
      name: made.name ?? 'probe',
      fault: made.fault ?? 'layer-ids-order',
      assumption: {} as Assumption,
      slotShift: 0,
      advice: '',
      preference: made.preference ?? 0,
    },
    gain: {
      forcedTau: estimate(BASE_TAU + made.gain, 0.2),
      servedTau: estimate(BASE_TAU + made.gain, 0.2),
      forcedGain: estimate(made.gain, error),
      servedGain: estimate(made.gain, error),
      firstSlotGain: estimate(made.firstSlot ?? made.gain / 10, 0.003),
    },
    sharedSlotsGain: estimate(made.shared ?? made.gain, error),
    newSlots: made.newSlots ?? null,
    acceptance: [],
    onAllPrompts: made.onAllPrompts ?? true,
  };
}

describe('the change that explains', () => {
  it('is none where nothing gains', () => {
    expect(selectChange([outcome({ gain: -1 }), outcome({ gain: 0 })])).toBeNull();
  });

  it('is the one that gains most', () => {
    const best = outcome({ name: 'best', gain: 1 });
    expect(selectChange([outcome({ gain: 0.5 }), best, outcome({ gain: 0.2 })])?.outcome).toBe(best);
  });

  it('must gain enough to matter, however certain', () => {
    expect(selectChange([outcome({ gain: LEAST_EFFECT * BASE_TAU * 0.9, error: 0.001 })])).toBeNull();
    expect(selectChange([outcome({ gain: LEAST_EFFECT * BASE_TAU * 1.1, error: 0.001 })])).not.toBeNull();
  });

  it('must stand out among all that was asked', () => {
    const doubtful = outcome({ gain: 0.3, error: 0.11 });
    expect(selectChange([doubtful])).not.toBeNull();
    expect(selectChange([doubtful, ...Array.from({ length: 60 }, () => outcome({ gain: -0.1 }))])).toBeNull();
    // What was asked beside it counts, too.
    expect(
      selectChange(
        [doubtful],
        Array.from({ length: 60 }, () => 0.9),
      ),
    ).toBeNull();
  });

  it('must have been asked of all prompts', () => {
    expect(selectChange([outcome({ gain: 1, onAllPrompts: false })])).toBeNull();
  });

  it('is an inclusive context only where slot 1 gains', () => {
    const late = outcome({ fault: 'context-inclusive', gain: 0.44, firstSlot: -0.004 });
    const leak = outcome({ fault: 'context-inclusive', gain: 0.29, firstSlot: 0.045 });
    expect(selectChange([late])).toBeNull();
    expect(selectChange([leak])?.outcome).toBe(leak);
  });

  it('is a shorter block only where the shared slots gain', () => {
    expect(selectChange([outcome({ fault: 'block-size', gain: 0.3, shared: 0 })])).toBeNull();
    expect(selectChange([outcome({ fault: 'block-size', gain: 0.3, shared: 0.2 })])).not.toBeNull();
  });

  it('is a longer block only where its new slots go on as those before', () => {
    expect(selectChange([outcome({ fault: 'block-size', gain: 1.3, shared: 0.2, newSlots: 0.4 })])).toBeNull();
    expect(selectChange([outcome({ fault: 'block-size', gain: 0.3, shared: 0, newSlots: 0.9 })])).toBeNull();
    expect(selectChange([outcome({ fault: 'block-size', gain: 1.3, shared: 0, newSlots: 0.9 })])).not.toBeNull();
  });

  it('is the likelier mistake among equals', () => {
    const likely = outcome({ name: 'likely', gain: 2.99, preference: 5 });
    expect(selectChange([outcome({ gain: 3, preference: 1 }), likely])?.outcome).toBe(likely);
  });
});

describe('what is asked of all prompts', () => {
  it('leaves out what cannot gain enough, and takes the best of the rest', () => {
    const good = outcome({ gain: 1 });
    const better = outcome({ gain: 2 });
    const hopeless = outcome({ gain: 0.01, error: 0.01 });
    const uncertain = outcome({ gain: 0.01, error: 0.2 });
    expect(worthAllPrompts([good, hopeless, better, uncertain], 6)).toEqual(new Set([better, good, uncertain]));
    expect(worthAllPrompts([good, better], 1)).toEqual(new Set([better]));
  });
});
