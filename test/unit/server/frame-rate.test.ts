import { expect, test } from 'vitest';
import { FrameRate } from '../../../src/server/websocket/frame-rate.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('as many frames as a second may have come at once, and then one by one', () => {
  const clock = new FakeClock();
  const rate = new FrameRate(4, clock);
  const taken = (count: number) => Array.from({ length: count }, () => rate.take()).filter(Boolean).length;
  expect(taken(10)).toBe(4);
  clock.advance(249);
  expect(taken(10)).toBe(0);
  clock.advance(1);
  expect(taken(10)).toBe(1);
  clock.advance(500);
  expect(taken(10)).toBe(2);
  clock.advance(60_000);
  expect(taken(10)).toBe(4);
});
