import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { DisposedError } from '../../../src/core/disposed-error.ts';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { MappedFile } from '../../../src/onnx/mapped-file.ts';
import { PrepackedWeights } from '../../../src/onnx/prepacked-weights.ts';
import { Session } from '../../../src/onnx/session.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { WeightTensors } from '../../../src/onnx/weight-tensors.ts';
import { testRuntime } from '../../support/runtime.ts';
import { BoundGraph, doublingModel } from './tiny-graphs.ts';

const runtime = testRuntime();
const folder = mkdtempSync(join(tmpdir(), 'disposal-test-'));
const file = join(folder, 'bytes.bin');
writeFileSync(file, Float32Array.of(1, 2, 3, 4));
afterAll(() => rmSync(folder, { recursive: true }));

describe('use after disposal', () => {
  it('is an error for a tensor', () => {
    const tensor = OwnedTensor.allocate(runtime, 'f32', [4]);
    expect(tensor.disposed).toBe(false);
    tensor[Symbol.dispose]();
    expect(tensor.disposed).toBe(true);
    expect(() => tensor.data).toThrow(DisposedError);
    expect(() => tensor.handle).toThrow(DisposedError);
    expect(() => tensor.reshaped([2])).toThrow(DisposedError);
  });

  it('is an error for a session', async () => {
    const session = await Session.create(runtime, doublingModel());
    session[Symbol.dispose]();
    expect(() => session.handle).toThrow(DisposedError);
    expect(() => session.createBinding()).toThrow(DisposedError);
  });

  it('is an error for a binding', async () => {
    using graph = await BoundGraph.create(runtime, doublingModel(), [4]);
    graph.binding[Symbol.dispose]();
    expect(() => graph.binding.input('x', graph.x)).toThrow(DisposedError);
    expect(() => graph.binding.output('y', graph.y)).toThrow(DisposedError);
    await expect(graph.binding.run()).rejects.toThrow(DisposedError);
  });

  it('is an error for a tensor that is still bound', async () => {
    using graph = await BoundGraph.create(runtime, doublingModel(), [4]);
    graph.x[Symbol.dispose]();
    await expect(graph.binding.run()).rejects.toThrow('The tensor bound to x was used after it was disposed');
  });

  it('is an error for a container of pre-packed weights', async () => {
    const prepacked = new PrepackedWeights(runtime);
    prepacked[Symbol.dispose]();
    expect(() => prepacked.handle).toThrow(DisposedError);
    await expect(Session.create(runtime, doublingModel(), { prepacked })).rejects.toThrow(DisposedError);
  });

  it('is an error for a mapped file', () => {
    const mapped = new MappedFile(runtime, file);
    mapped[Symbol.dispose]();
    expect(() => mapped.tensor(runtime, 'f32', [4], 0)).toThrow(DisposedError);
  });

  it('is an error for a set of weights, read or not', () => {
    const location = { file, offset: 0, dtype: 'F32', shape: [4] };
    const weights = new WeightTensors(
      runtime,
      new Map([
        ['read', location],
        ['unread', location],
      ]),
    );
    expect([...weights.get('read').data]).toEqual([1, 2, 3, 4]);
    weights[Symbol.dispose]();
    expect(() => weights.get('read')).toThrow(DisposedError);
    expect(() => weights.get('unread')).toThrow(DisposedError);
    using late = OwnedTensor.allocate(runtime, 'f32', [1]);
    expect(() => weights.add('late', late)).toThrow(DisposedError);
  });
});

describe('native objects', () => {
  it('are counted while they live, and released once', async () => {
    expect(liveObjects()).toEqual({});
    const graph = await BoundGraph.create(runtime, doublingModel(), [4]);
    const prepacked = new PrepackedWeights(runtime);
    const mapped = new MappedFile(runtime, file);
    expect(liveObjects()).toEqual({ session: 1, binding: 1, tensor: 2, 'prepacked-weights': 1, 'mapped-file': 1 });
    for (let again = 0; again < 2; again++) {
      graph[Symbol.dispose]();
      prepacked[Symbol.dispose]();
      mapped[Symbol.dispose]();
    }
    expect(liveObjects()).toEqual({});
  });

  it('do not stay behind when a session is refused', async () => {
    await expect(Session.create(runtime, new Uint8Array(2048))).rejects.toThrow();
    expect(liveObjects()).toEqual({});
  });
});
