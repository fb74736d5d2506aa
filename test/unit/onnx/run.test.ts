import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AbortedError } from '../../../src/core/aborted-error.ts';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { OnnxRuntimeError } from '../../../src/onnx/onnx-runtime-error.ts';
import { Session } from '../../../src/onnx/session.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { testRuntime } from '../../support/runtime.ts';
import { BoundGraph, doublingModel, powerModel, rotation, WEIGHT } from './tiny-graphs.ts';

const runtime = testRuntime();

/** A run of this graph takes long on any machine: 2 · SIZE³ · FACTORS, about 160 billion, operations. */
const SIZE = 512;
const FACTORS = 600;
const weight = rotation(runtime, SIZE);
let long: BoundGraph;

/** Where SIZE × SIZE elements, counted up, are after FACTORS rotations. */
function rotated(row: number, column: number): number {
  return row * SIZE + ((((column - FACTORS) % SIZE) + SIZE) % SIZE);
}

beforeAll(async () => {
  const initializers = new Map([[WEIGHT, weight]]);
  long = await BoundGraph.create(runtime, powerModel(SIZE, FACTORS), [SIZE, SIZE], { initializers });
  for (let i = 0; i < SIZE * SIZE; i++) long.x.data[i] = i;
});

afterAll(() => {
  long[Symbol.dispose]();
  weight[Symbol.dispose]();
  expect(liveObjects()).toEqual({});
});

describe('a run', () => {
  it('leaves the event loop free, and lets a run of another binding overtake it', async () => {
    using short = await BoundGraph.create(runtime, doublingModel(), [4]);
    short.x.data.set([1, 2, 3, 4]);
    const finished: string[] = [];
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 1);
    const longRun = long.binding.run().then(() => finished.push('long'));
    await short.binding.run();
    finished.push('short');
    await longRun;
    clearInterval(ticking);
    expect(finished).toEqual(['short', 'long']);
    expect(ticks).toBeGreaterThan(50);
    expect([...short.y.data]).toEqual([2, 4, 6, 8]);
    expect(long.y.data[3 * SIZE + 5]).toBe(rotated(3, 5));
  });

  it('of a binding that has one in flight is refused, and disposal too', async () => {
    const first = long.binding.run();
    await expect(long.binding.run()).rejects.toThrow(OnnxRuntimeError);
    await expect(long.binding.run()).rejects.toThrow('one run at a time');
    expect(() => long.binding[Symbol.dispose]()).toThrow('cannot be disposed of while its run is in flight');
    await first;
    expect(long.y.data[7]).toBe(rotated(0, 7));
  });

  it('ends soon after an abort, and the binding serves again', { retry: 2 }, async () => {
    const fullStart = performance.now();
    await long.binding.run();
    const fullMs = performance.now() - fullStart;

    const abort = new AbortController();
    const run = long.binding.run(abort.signal);
    await sleep(20);
    const aborted = performance.now();
    abort.abort();
    await expect(run).rejects.toThrow(AbortedError);
    expect(performance.now() - aborted).toBeLessThan(fullMs / 2);

    long.y.data.fill(0);
    await long.binding.run(new AbortController().signal);
    expect(long.y.data[SIZE + 1]).toBe(rotated(1, 1));
  });

  it('with a signal that was aborted before does not begin', async () => {
    long.y.data.fill(-1);
    await expect(long.binding.run(AbortSignal.abort())).rejects.toThrow(AbortedError);
    expect(long.y.data[0]).toBe(-1);
  });

  it('is not ended by an abort that came after it', async () => {
    using short = await BoundGraph.create(runtime, doublingModel(), [4]);
    const abort = new AbortController();
    await short.binding.run(abort.signal);
    abort.abort();
    await short.binding.run();
    short.x.data.set([2, 2, 2, 2]);
    await short.binding.run();
    expect([...short.y.data]).toEqual([4, 4, 4, 4]);
  });

  it('reads inputs and writes outputs that were bound anew', async () => {
    using session = await Session.create(runtime, doublingModel());
    using binding = session.createBinding();
    using a = OwnedTensor.over(runtime, 'f32', [4], Float32Array.of(1, 1, 1, 1));
    using b = OwnedTensor.over(runtime, 'f32', [4], Float32Array.of(3, 3, 3, 3));
    using y = OwnedTensor.allocate(runtime, 'f32', [4]);
    using z = OwnedTensor.allocate(runtime, 'f32', [4]);
    binding.input('x', a);
    binding.output('y', y);
    await binding.run();
    binding.input('x', b);
    binding.output('y', z);
    await binding.run();
    expect([y.data[0], z.data[0]]).toEqual([2, 6]);
  });
});
