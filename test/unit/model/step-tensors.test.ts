import { describe, expect, it } from 'vitest';
import { StepTensors } from '../../../src/model/step-tensors.ts';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { testRuntime } from '../../support/runtime.ts';

const liveTensors = () => liveObjects()['tensor'] ?? 0;

describe('tensors of a step', () => {
  it('are the same for the same shape, and share their memory with others of the name', () => {
    using tensors = new StepTensors(testRuntime());
    const wide = tensors.shaped('x', 'f32', [2, 3]);
    const narrow = tensors.shaped('x', 'f32', [3]);
    expect(tensors.shaped('x', 'f32', [2, 3])).toBe(wide);
    wide.data[1] = 7;
    expect(narrow.data[1]).toBe(7);
    tensors.shaped('y', 'f32', [3]).data[1] = 8;
    expect(narrow.data[1]).toBe(7);
  });

  it('do not become more with every length of a context', () => {
    const before = liveTensors();
    using tensors = new StepTensors(testRuntime());
    tensors.shaped('bias', 'f32', [8, 1000]);
    for (let length = 1; length < 100; length++) tensors.shaped('bias', 'f32', [8, length]);
    const some = liveTensors() - before;
    const often = tensors.shaped('bias', 'f32', [8, 1]);
    for (let length = 100; length < 1000; length++) {
      const tensor = tensors.shaped('bias', 'f32', [8, length]);
      expect(tensor.data.length).toBe(8 * length);
      expect(tensors.shaped('bias', 'f32', [8, 1])).toBe(often);
    }
    expect(liveTensors() - before).toBeLessThanOrEqual(some + 1);
  });

  it('go with their owner', () => {
    const before = liveTensors();
    const tensors = new StepTensors(testRuntime());
    for (let length = 1; length < 200; length++) tensors.shaped('x', 'i64', [length]);
    tensors[Symbol.dispose]();
    expect(liveTensors()).toBe(before);
  });
});
