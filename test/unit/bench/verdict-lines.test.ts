import { expect, it } from 'vitest';
import { breakEven } from '../../../src/bench/gains.ts';
import type { BenchResult } from '../../../src/bench/result-schema.ts';
import { verdictLines } from '../../../src/bench/verdict-lines.ts';

function resultOf(...gains: [load: number, value: number, low: number, high: number][]): BenchResult {
  const told = gains.map(([max_concurrency, value, low, high]) => ({
    variant: 'd',
    max_concurrency,
    gain: { value, low, high },
  }));
  const at = breakEven(told.map(({ max_concurrency: concurrency, gain }) => ({ concurrency, gain })));
  return {
    gains: told,
    break_even: { d: at },
    knees: {},
    points: [],
    errors: [],
    complete: true,
    lossless: { compared: 0, differing: [] },
  } as unknown as BenchResult;
}

it.each<[string, Parameters<typeof resultOf>, string[]]>([
  [
    'at every load',
    [
      [1, 2, 1.8, 2.2],
      [4, 1.5, 1.3, 1.7],
    ],
    ['d pays at every load measured: 2.00 × at 1 client, 1.50 × at 4 clients.'],
  ],
  ['at the only load', [[1, 2, 1.8, 2.2]], ['d pays at every load measured: 2.00 × at 1 client.']],
  [
    'up to a load',
    [
      [1, 2, 1.8, 2.2],
      [4, 0.5, 0.4, 0.6],
    ],
    ['d pays up to about 2.5 clients: 2.00 × at 1 client.'],
  ],
  [
    'nowhere',
    [
      [1, 0.9, 0.8, 0.95],
      [4, 0.5, 0.4, 0.6],
    ],
    ['d pays at no load measured: 0.90 × at 1 client.'],
  ],
  [
    'perhaps',
    [
      [1, 1.2, 0.9, 1.4],
      [2, 0.9, 0.8, 1.1],
      [4, 1.3, 1.1, 1.5],
    ],
    [
      'd pays at the highest load, but not at 2 clients: 1.20 × at 1 client, 1.30 × at 4 clients.',
      'd: no more than noise at 1, 2 clients; more prompts or repeats would tell.',
    ],
  ],
])('speculation that pays %s is told so', (_, gains, lines) => {
  expect(verdictLines(resultOf(...gains))).toEqual(lines);
});
