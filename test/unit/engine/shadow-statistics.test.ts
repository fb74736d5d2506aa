import { expect, it } from 'vitest';
import { ShadowStatistics } from '../../../src/engine/shadow-statistics.ts';

const round = (drafted: number, accepted: number) => ({ drafted, evaluated: drafted, accepted, emitted: accepted + 1 });

it('compares pairs at the shorter length, and each draft at its own', () => {
  const statistics = new ShadowStatistics();
  const add = (request: string, own: [number, number], served: [number, number]) =>
    statistics.add(request, { ...round(...own), shadow: 'b', drafter: 'a', served: round(...served) });
  add('r1', [4, 3], [2, 2]);
  add('r1', [1, 1], [4, 4]);
  add('r2', [3, 0], [3, 2]);
  add('r2', [3, 3], [0, 0]);
  for (const request of ['r1', 'r2']) statistics.end(request);
  const { counts, paired } = statistics.status();
  expect(counts).toMatchObject({ numDrafts: 4, numAcceptedTokens: 7, acceptanceLength: { mean: 1 + 7 / 4, requests: 2 } });
  expect(paired).toMatchObject([{ served: 'a', difference: { mean: -2 / 3, count: 3, requests: 2 } }]);
  expect(paired[0]?.positions).toEqual([
    { pairs: 3, shadow: 2, served: 3 },
    { pairs: 2, shadow: 1, served: 2 },
    { pairs: 1, shadow: 0, served: 0 },
  ]);
});
