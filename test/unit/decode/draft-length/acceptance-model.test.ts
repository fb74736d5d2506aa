import { describe, expect, it } from 'vitest';
import { AcceptanceModel } from '../../../../src/decode/draft-length/acceptance-model.ts';

const slot = (confidence: number | null, place = 0, sampled = false) => ({ slot: place, confidence, sampled });

describe('the probability of acceptance', () => {
  it('is what the drafter says until something is known', () => {
    const model = new AcceptanceModel();
    expect(model.probability(slot(0.7))).toBeCloseTo(0.7);
    expect(model.probability(slot(null))).toBeCloseTo(0.5);
  });

  it('is what was observed once there is enough of it', () => {
    const model = new AcceptanceModel();
    for (let i = 0; i < 400; i++) model.observe(slot(0.95), i % 4 === 0);
    expect(model.probability(slot(0.92))).toBeCloseTo(0.25, 1);
  });

  it('is learned for each slot, each tenth of confidence and each way of choosing by itself', () => {
    const model = new AcceptanceModel();
    const others = [slot(0.85), slot(0.95, 1), slot(0.95, 0, true), slot(null)];
    for (let i = 0; i < 200; i++) {
      model.observe(slot(0.95), false);
      for (const other of others) model.observe(other, true);
    }
    expect(model.probability(slot(0.95))).toBeLessThan(0.1);
    for (const other of others) expect(model.probability(other)).toBeGreaterThan(0.9);
  });

  it('of what was never seen follows how true the drafter has been elsewhere, for each way of choosing by itself', () => {
    const model = new AcceptanceModel();
    for (let i = 0; i < 100; i++) model.observe(slot(0.8), i % 2 === 0);
    expect(model.probability(slot(0.4, 1))).toBeCloseTo((0.4 * 0.5) / 0.8, 1);
    expect(model.probability(slot(0.4, 1, true))).toBeCloseTo(0.4);
  });

  it('forgets: what is true now outweighs what was', () => {
    const model = new AcceptanceModel();
    for (let i = 0; i < 3000; i++) model.observe(slot(0.5), true);
    for (let i = 0; i < 1000; i++) model.observe(slot(0.5), false);
    expect(model.probability(slot(0.5))).toBeLessThan(0.25);
  });

  it('stays within 0 and 1 at full confidence', () => {
    const model = new AcceptanceModel();
    for (let i = 0; i < 50; i++) model.observe(slot(1), true);
    expect(model.probability(slot(1))).toBeLessThanOrEqual(1);
  });
});
