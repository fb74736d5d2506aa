import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StatisticsLog } from '../../../src/cli/statistics-log.ts';
import type { StepReport } from '../../../src/engine/engine.ts';
import { type LogLine, recordingLogger } from '../../support/recording-logger.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const step = (facts: Partial<StepReport>): StepReport => ({
  durationMs: 1,
  draftMs: 0,
  sequences: 1,
  promptRows: 0,
  decodeRows: 1,
  emitted: 1,
  rounds: [],
  shadows: [],
  ...facts,
});

function setUp(synthetic = false) {
  const lines: LogLine[] = [];
  const load = () => ({ running: 2, waiting: 1, cacheUsage: 0.5 });
  return { lines, log: new StatisticsLog({ logger: recordingLogger(lines), load, intervalMs: 10_000, synthetic }) };
}

it('tells in one line what an interval brought, and begins anew', () => {
  const { lines, log } = setUp();
  log.onStep(step({ promptRows: 100 }));
  const round = { drafted: 4, evaluated: 3, accepted: 2, emitted: 3, shortBy: null, drafter: 'd' };
  log.onStep(step({ emitted: 3, rounds: [round] }));
  const half = { ...round, drafted: 2, evaluated: 1, accepted: 0, emitted: 1, shortBy: 'near-max-tokens' } as const;
  log.onStep(step({ rounds: [half] }));
  log.onStep(step({ rounds: [{ ...half, drafted: 0, evaluated: 0, shortBy: 'load' }] }));
  vi.advanceTimersByTime(10_000);
  expect(lines).toEqual([
    {
      level: 'info',
      message: 'statistics',
      fields: {
        running: 2,
        waiting: 1,
        cacheUsage: 0.5,
        promptTokensPerSecond: 10,
        tokensPerSecond: 0.6,
        acceptanceLength: 2,
        acceptedTokensPerSecond: 0.2,
        draftedTokensPerSecond: 0.6,
        acceptedTokens: 2,
        draftTokens: 6,
        acceptanceByPosition: [0.5, 0.5, 0, 0],
        acceptanceRate: 0.333,
        roundsWithoutDraft: { load: 1 },
      },
    },
  ]);
  log.onStep(step({ emitted: 10 }));
  vi.advanceTimersByTime(10_000);
  expect(lines[1]?.fields).toEqual({ running: 2, waiting: 1, cacheUsage: 0.5, promptTokensPerSecond: 0, tokensPerSecond: 1 });
});

it('says nothing while nothing happens, and nothing more once it is disposed of', () => {
  const { lines, log } = setUp();
  vi.advanceTimersByTime(60_000);
  expect(lines).toEqual([]);
  log.onStep(step({}));
  log[Symbol.dispose]();
  vi.advanceTimersByTime(60_000);
  expect(lines).toEqual([]);
});

it('marks lines of a server whose drafts are kept by given rates', () => {
  const { lines, log } = setUp(true);
  log.onStep(step({ emitted: 10 }));
  vi.advanceTimersByTime(10_000);
  expect(lines[0]?.fields).toMatchObject({ synthetic: true, tokensPerSecond: 1 });
});
