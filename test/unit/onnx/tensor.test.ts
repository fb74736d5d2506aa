import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from 'vitest';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { testRuntime } from '../../support/runtime.ts';
import { BoundGraph, doublingModel } from './tiny-graphs.ts';

const runtime = testRuntime();
afterEach(() => expect(liveObjects()).toEqual({}));

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

describe('a tensor', () => {
  it('shows its memory in place', async () => {
    using graph = await BoundGraph.create(runtime, doublingModel(), [4]);
    for (const values of [
      [1, 2, 3, 4],
      [0.5, -1, 8, 1e9],
    ]) {
      graph.x.data.set(values);
      await graph.binding.run();
      expect([...graph.y.data]).toEqual(values.map((value) => 2 * value));
    }
  });

  it.each([4, 1024])('over an array of %i elements keeps its memory while it lives', async (length) => {
    using graph = await BoundGraph.create(runtime, doublingModel(), [4]);
    // Nothing but the tensor holds the array.
    using tensor = OwnedTensor.over(runtime, 'f32', [length], new Float32Array(length).fill(3));
    using leading = tensor.reshaped([4]);
    graph.binding.input('x', leading);
    collectGarbage();
    // Whatever was freed is taken and written over.
    for (let i = 0; i < 10_000; i++) new Float32Array(length).fill(-1);
    await graph.binding.run();
    expect([...graph.y.data]).toEqual([6, 6, 6, 6]);
    tensor.data[3] = 40;
    await graph.binding.run();
    expect(graph.y.data[3]).toBe(80);
  });

  it('over a big array is that array', () => {
    const elements = new Float32Array(4096);
    using big = OwnedTensor.over(runtime, 'f32', [64, 64], elements);
    elements[17] = 5;
    expect(big.data[17]).toBe(5);
    big.data[18] = 6;
    expect(elements[18]).toBe(6);
    using view = big.reshaped([32]);
    expect(view.data[18]).toBe(6);
  });

  it('copies a part of another, and nothing beside it', () => {
    using from = OwnedTensor.allocate(runtime, 'f32', [2, 4]);
    using to = OwnedTensor.allocate(runtime, 'f32', [2, 4]);
    from.data.set([1, 2, 3, 4, 5, 6, 7, 8]);
    to.data.fill(0);
    to.copyRange(from, 4, 3);
    expect([...to.data]).toEqual([0, 0, 0, 0, 5, 6, 7, 0]);
    to.copyRange(from, 8, 0);
    expect(() => to.copyRange(from, 6, 3)).toThrow(/3 elements from 6/);
    expect(() => to.copyRange(from, -1, 2)).toThrow(/2 elements from -1/);
    using shorter = OwnedTensor.allocate(runtime, 'f32', [4]);
    expect(() => to.copyRange(shorter, 4, 1)).toThrow(/part of \[4\]/);
  });

  it('copies without memory of JavaScript’s', () => {
    using from = OwnedTensor.allocate(runtime, 'f32', [1 << 18]);
    using to = OwnedTensor.allocate(runtime, 'f32', [1 << 18]);
    collectGarbage();
    const before = process.memoryUsage().external;
    for (let i = 0; i < 64; i++) to.copyRange(from, 0, 1 << 18);
    expect(process.memoryUsage().external - before).toBeLessThan(1 << 20);
  });

  it('of each element type has the view and the bytes of it', () => {
    for (const [type, bytes] of [
      ['f32', 4],
      ['u8', 1],
      ['i8', 1],
      ['i32', 4],
      ['i64', 8],
      ['bool', 1],
      ['f16', 2],
      ['bf16', 2],
    ] as const) {
      using tensor = OwnedTensor.allocate(runtime, type, [2, 3]);
      expect(tensor.byteLength, type).toBe(6 * bytes);
      expect(tensor.data.byteLength, type).toBe(6 * bytes);
      expect(tensor.data.length, type).toBe(6);
    }
  });

  it('has views over its leading elements, and refuses larger ones', () => {
    using tensor = OwnedTensor.allocate(runtime, 'i32', [2, 3]);
    tensor.data.set([1, 2, 3, 4, 5, 6]);
    using view = tensor.reshaped([4]);
    expect([...view.data]).toEqual([1, 2, 3, 4]);
    view.data[0] = 9;
    expect(tensor.data[0]).toBe(9);
    expect(() => tensor.reshaped([7])).toThrow('Expected at most 6 elements, got [7]');
  });
});
