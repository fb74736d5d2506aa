import { expect, it } from 'vitest';
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

it('a session that could not be created is tried again when it is wanted again', async () => {
  const runtime = testRuntime();
  const prepacked = new PrepackedWeights(runtime);
  const tried: number[] = [];
  let failures = 1;
  const sessions = new SlotSessions({
    runtime,
    device: { kind: 'cpu' },
    weight: () => {
      throw new Error('a graph without weights asked for one');
    },
    prepacked,
    maxSlots: 4,
    build(slots) {
      tried.push(slots);
      if (slots === 2 && failures-- > 0) throw new Error('no memory');
      return doubling(slots);
    },
  });
  await expect(Promise.all([sessions.serving(2), sessions.serving(2)])).rejects.toThrow('no memory');
  expect((await sessions.serving(2)).slots).toBe(2);
  expect((await sessions.serving(2)).slots).toBe(2);
  expect(tried).toEqual([2, 2]);
  await sessions[Symbol.asyncDispose]();
  prepacked[Symbol.dispose]();
  expect(liveObjects()).toEqual({});
});
