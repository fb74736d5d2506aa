import { describe, expect, it } from 'vitest';
import type { Drafter } from '../../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { CacheBudget, cacheBytes, planCacheBytes } from '../../../src/engine/cache-budget.ts';
import { Gate } from '../../support/gate.ts';
import { until } from '../../support/labelled-timeout.ts';
import { ScriptedTarget } from '../../support/scripted-target.ts';
import { answerOf, answersTexts, NEVER, openEngine, request } from './engine-fixture.ts';

const target = new ScriptedTarget({
  vocabSize: 4,
  nextLogits: () => new Float32Array(4),
  maxContext: 64,
  maxSequences: 3,
  cacheBytesPerPosition: 10,
});
const heavy: Drafter = Object.assign(new NgramDrafter(), { bytesPerPosition: 5 });
const memory = (availableBytes: number, prefixCacheBytes = 0) => ({ availableBytes, prefixCacheBytes });

describe('the memory that a request needs', () => {
  it('is that of its positions in whole pages and one more, in the target and in its drafter', () => {
    expect(cacheBytes(target, null, 1)).toBe(2 * 16 * 10);
    expect(cacheBytes(target, null, 32)).toBe(3 * 16 * 10);
    expect(cacheBytes(target, heavy, 33)).toBe(4 * 16 * 15);
  });

  it('is also that of what a drafter keeps of each sequence', () => {
    const keeping: Drafter = Object.assign(new NgramDrafter(), { bytesPerPosition: 5, bytesPerSequence: 700 });
    expect(cacheBytes(target, keeping, 33)).toBe(4 * 16 * 15 + 700);
  });

  it('has room or not, and leaves it when it is given back', () => {
    const budget = new CacheBudget(100);
    expect([budget.reserve(60), budget.reserve(50), budget.reserve(40), budget.usage]).toEqual([true, false, true, 1]);
    budget.release(60);
    expect([budget.usage, budget.reserve(60)]).toEqual([0.4, true]);
  });
});

describe('the memory for all requests', () => {
  /** 64 positions are 4 pages. */
  const SEQUENCE = 5 * 16 * 15;

  it('is what all sequences can need with the heaviest drafter, if a part of what is free holds it', () => {
    expect(planCacheBytes(target, [new NgramDrafter(), heavy], null, memory(1e9))).toBe(3 * SEQUENCE);
    expect(planCacheBytes(target, [heavy], null, memory(2.5 * SEQUENCE))).toBe(2 * SEQUENCE);
    expect(planCacheBytes(target, [heavy], null, memory(2.5 * SEQUENCE, 0.5 * SEQUENCE))).toBe(1.5 * SEQUENCE);
  });

  it('is what was asked for, and no more than can be used', () => {
    expect(planCacheBytes(target, [heavy], SEQUENCE + 1, memory(SEQUENCE + 1))).toBe(SEQUENCE + 1);
    expect(planCacheBytes(target, [heavy], 1e9, memory(3 * SEQUENCE))).toBe(3 * SEQUENCE);
  });

  it.each([
    { asked: SEQUENCE - 1, free: memory(1e9), advice: /; lower --max-context or raise --kv-cache-bytes$/ },
    { asked: null, free: memory(SEQUENCE), advice: /of free memory; lower --max-context$/ },
    { asked: null, free: memory(2 * SEQUENCE, SEQUENCE), advice: /; lower --prefix-cache-bytes, which takes 1200, or/ },
  ])('must be enough for one sequence of full length ($asked of $free)', ({ asked, free, advice }) => {
    expect(() => planCacheBytes(target, [heavy], asked, free)).toThrowError(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(advice) }),
    );
  });

  it.each([memory(2 * SEQUENCE - 1), memory(2 * SEQUENCE, 1)])('must be there, with that of the prefix cache (%o)', (free) => {
    expect(() => planCacheBytes(target, [heavy], 2 * SEQUENCE, free)).toThrowError(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('--prefix-cache-bytes') }),
    );
  });
});

describe('requests that need more memory than is left', () => {
  it('wait for it, and hold up those behind them', async () => {
    const gate = new Gate();
    const bytes = (positions: number) => (Math.ceil(positions / 16) + 1) * 16;
    const { engine, recorder } = openEngine({
      nextLogits: answersTexts({}),
      drafter: null,
      cacheBytesPerPosition: 1,
      cacheBytes: bytes(256),
      duringStep: () => gate.opened,
    });
    const ask = (length: number, maxTokens: number | null) =>
      request(new Array<number>(length).fill(1), { maxTokens, ignoreEos: true });
    const asked = [ask(100, 10), ask(50, null), ask(3, 3)];
    const controller = new AbortController();
    const answers = asked.map((one, i) => answerOf(engine.generate(one, i === 1 ? controller.signal : NEVER)));
    await until('the first one runs', () => engine.load().running === 1);
    expect(engine.load()).toEqual({ running: 1, waiting: 2, cacheUsage: bytes(110) / bytes(256) });
    gate.open();
    await until('the second one runs alone', () => engine.load().running === 1 && engine.load().cacheUsage === 1);
    expect(engine.load().waiting).toBe(1);
    controller.abort();
    await Promise.all(answers);
    expect(recorder.finishes.map((entry) => asked.indexOf(entry.request))).toEqual([0, 1, 2]);
    expect(engine.load()).toEqual({ running: 0, waiting: 0, cacheUsage: 0 });
  });
});
