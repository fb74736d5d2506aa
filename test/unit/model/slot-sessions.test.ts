import { describe, expect, it, onTestFinished } from 'vitest';
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import { SlotSessions } from '../../../src/model/slot-sessions.ts';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { PrepackedWeights } from '../../../src/onnx/prepacked-weights.ts';
import { testRuntime } from '../../support/runtime.ts';

/** y = x + x, [slots] of f32 */
function doubling(slots: number) {
  const graph = new GraphBuilder();
  const x = graph.input('x', 'f32', [slots]);
  graph.output(graph.node('Add', [x, x], { name: 'y' }), 'f32', [slots]);
  return graph.build();
}

function setUp(fails: (slots: number) => boolean) {
  const runtime = testRuntime();
  const prepacked = new PrepackedWeights(runtime);
  const tried: number[] = [];
  const told: unknown[] = [];
  const sessions = new SlotSessions({
    runtime,
    device: { kind: 'cpu' },
    weight: () => {
      throw new Error('a graph without weights asked for one');
    },
    prepacked,
    maxSlots: 8,
    build(slots) {
      tried.push(slots);
      if (fails(slots)) throw new Error('no memory');
      return doubling(slots);
    },
    onFewer: (slots, error) => told.push([slots, error instanceof Error && error.message]),
  });
  onTestFinished(async () => {
    await sessions[Symbol.asyncDispose]();
    prepacked[Symbol.dispose]();
    expect(liveObjects()).toEqual({});
  });
  return { sessions, tried, told };
}

describe('a session that cannot be created', () => {
  it('leaves those that serve fewer, and is not tried again', async () => {
    const { sessions, tried, told } = setUp((slots) => slots >= 4);
    await sessions.prepare(1);
    await Promise.all([sessions.prepare(7), sessions.prepare(6)]);
    await sessions.prepare(7);
    expect(sessions.maxSlots).toBe(2);
    expect(tried).toEqual([1, 8, 4, 2]);
    expect(told).toEqual([
      [4, 'no memory'],
      [2, 'no memory'],
    ]);
    expect((await sessions.serving(2)).slots).toBe(2);
    await expect(sessions.serving(3)).rejects.toThrow('at most 2 sequences');
  });

  it('is stood in for by a larger one that is there', async () => {
    const { sessions, told } = setUp((slots) => slots === 4);
    await sessions.prepare(8);
    await sessions.prepare(3);
    expect((await sessions.serving(3)).slots).toBe(8);
    expect(told).toEqual([]);
  });

  it('is told to who wants it, and the smallest is tried again when it is wanted again', async () => {
    let failures = 1;
    const { sessions, tried } = setUp(() => failures-- > 0);
    await expect(Promise.all([sessions.serving(1), sessions.serving(1)])).rejects.toThrow('no memory');
    expect((await sessions.serving(1)).slots).toBe(1);
    expect(tried).toEqual([1, 1]);
  });

  it('ends the loading of all, which is no failure', async () => {
    const { sessions, tried } = setUp((slots) => slots === 4);
    await sessions.loadAll();
    expect(tried).toEqual([1, 2, 4]);
    expect(sessions.maxSlots).toBe(2);
  });
});
