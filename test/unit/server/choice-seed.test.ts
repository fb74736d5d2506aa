import { expect, test } from 'vitest';
import { choiceSeed, randomSeed } from '../../../src/server/choice-seed.ts';

test('the first choice has the seed of the request', () => {
  expect(choiceSeed(42, 0)).toBe(42n);
  expect(choiceSeed(-1, 0)).toBe(2n ** 64n - 1n);
});

test('the seeds of 128 choices of neighbouring requests all differ and can be sent back as JSON numbers', () => {
  const seeds = [0, 1, 2].flatMap((seed) => Array.from({ length: 128 }, (_, choice) => choiceSeed(seed, choice)));
  expect(new Set(seeds).size).toBe(seeds.length);
  expect(seeds.every((seed) => Number.isSafeInteger(Number(seed)))).toBe(true);
});

test('the same seed and choice give the same seed', () => {
  expect(choiceSeed(7, 3)).toBe(choiceSeed(7, 3));
});

test('a random seed survives JSON', () => {
  const seed = randomSeed();
  expect(Number.isSafeInteger(seed)).toBe(true);
  expect(randomSeed()).not.toBe(seed);
});
