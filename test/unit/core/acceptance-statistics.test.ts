import { describe, expect, it } from 'vitest';
import { acceptanceStatistics, statisticsOfRecords } from '../../../src/core/acceptance-statistics.ts';
import type { RoundRecord, SpeculationRecord } from '../../../src/core/speculation-record.ts';

function record(maxDraftTokens: number, rounds: readonly RoundRecord[]): SpeculationRecord {
  return { drafter: 'test', maxDraftTokens, rounds, noDraft: {}, shortened: {}, drafterError: null };
}

describe('statisticsOfRecords', () => {
  it('takes the longest draft of all records and what was really evaluated', () => {
    const statistics = statisticsOfRecords([
      record(2, [{ drafted: 2, evaluated: 1, accepted: 1, emitted: 1 }]),
      record(4, [{ drafted: 4, evaluated: 3, accepted: 2, emitted: 3 }]),
    ]);
    expect(statistics.perPosition).toEqual([1, 0.5, 0, 0]);
    expect(statistics.acceptanceHistogram).toEqual([0, 1, 1, 0, 0]);
    // The first answer ended behind its accepted token: the second draft token was never compared.
    expect(statistics.evaluatedRate).toBe(3 / 4);
    expect(statistics.completionTokens).toBe(2 + 1 + 3);
  });

  it('has nothing to divide without records', () => {
    const statistics = statisticsOfRecords([]);
    expect(statistics).toMatchObject({
      numDrafts: 0,
      completionTokens: 0,
      meanAcceptanceLength: null,
      macroMeanAcceptanceLength: null,
    });
    expect(statistics.perPosition).toEqual([]);
  });
});

describe('acceptanceStatistics', () => {
  it('leaves requests without drafts out of the mean over requests', () => {
    const plain = [{ drafted: 0, accepted: 0, emitted: 1 }];
    expect(acceptanceStatistics([plain, [{ drafted: 2, accepted: 2, emitted: 3 }]], 2).macroMeanAcceptanceLength).toBe(3);
  });
});
