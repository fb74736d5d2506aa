import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { MappedFile } from '../../../src/onnx/mapped-file.ts';
import { PrepackedWeights } from '../../../src/onnx/prepacked-weights.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { WeightTensors } from '../../../src/onnx/weight-tensors.ts';
import { testRuntime } from '../../support/runtime.ts';
import { BoundGraph, powerModel, WEIGHT } from './tiny-graphs.ts';

const runtime = testRuntime();
const folder = mkdtempSync(join(tmpdir(), 'shared-weights-test-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => expect(liveObjects()).toEqual({}));

const SIZE = 32;

/** Numbers without a pattern, from -0.5 to 0.5. */
function noise(length: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length }, (_, i) => ((Math.imul(i + 1, 2654435761) >>> 8) % 4096) / 4096 - 0.5);
}

async function resultOf(graph: BoundGraph): Promise<number[]> {
  graph.x.data.set(noise(SIZE * SIZE).reverse());
  await graph.binding.run();
  return [...graph.y.data];
}

describe('sessions over the same weights', () => {
  it('compute the same as sessions with their own, also after one of them is gone', async () => {
    using weight = OwnedTensor.over(runtime, 'f32', [SIZE, SIZE], noise(SIZE * SIZE));
    const initializers = new Map([[WEIGHT, weight]]);
    const create = (factors: number, options = {}) =>
      BoundGraph.create(runtime, powerModel(SIZE, factors), [SIZE, SIZE], { initializers, ...options });
    using alone1 = await create(1);
    using alone2 = await create(2);
    const expected = [await resultOf(alone1), await resultOf(alone2)];

    using prepacked = new PrepackedWeights(runtime);
    const shared1 = await create(1, { prepacked });
    using shared2 = await create(2, { prepacked });
    using shared3 = await create(2, { prepacked });
    expect(await resultOf(shared1)).toEqual(expected[0]);
    expect(await resultOf(shared2)).toEqual(expected[1]);
    shared1[Symbol.dispose]();
    expect(await resultOf(shared2)).toEqual(expected[1]);
    expect(await resultOf(shared3)).toEqual(expected[1]);
  });

  it('compute what plain arithmetic does', async () => {
    const elements = noise(SIZE * SIZE);
    using weight = OwnedTensor.over(runtime, 'f32', [SIZE, SIZE], elements);
    using graph = await BoundGraph.create(runtime, powerModel(SIZE, 1), [SIZE, SIZE], {
      initializers: new Map([[WEIGHT, weight]]),
    });
    const product = await resultOf(graph);
    for (const [row, column] of [
      [0, 0],
      [3, 17],
      [31, 31],
    ] as const) {
      let sum = 0;
      for (let k = 0; k < SIZE; k++) sum += graph.x.data[row * SIZE + k]! * elements[k * SIZE + column]!;
      expect(product[row * SIZE + column]).toBeCloseTo(sum, 5);
    }
  });
});

describe('a mapped file', () => {
  const file = join(folder, 'weights.bin');
  // One byte in front of four floats, and again four floats where the offset suits them.
  const bytes = new Uint8Array(36);
  bytes.set(new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer), 1);
  bytes.set(new Uint8Array(Float32Array.of(5, 6, 7, 8).buffer), 20);
  writeFileSync(file, bytes);

  it('is read in place where the offset suits the type, and copied where it does not', () => {
    using mapped = new MappedFile(runtime, file);
    expect(mapped.byteLength).toBe(36);
    using copied = mapped.tensor(runtime, 'f32', [2, 2], 1);
    expect([...copied.data]).toEqual([1, 2, 3, 4]);
    // Kernels may load whole vectors from where the elements begin.
    expect(koffi.address(copied.data) % 4n).toBe(0n);
    using inPlace = mapped.tensor(runtime, 'f32', [4], 20);
    expect([...inPlace.data]).toEqual([5, 6, 7, 8]);
    using oddBytes = mapped.tensor(runtime, 'u8', [3], 1);
    expect([...oddBytes.data]).toEqual([...bytes.subarray(1, 4)]);
  });

  it('refuses tensors that reach outside', () => {
    using mapped = new MappedFile(runtime, file);
    expect(() => mapped.tensor(runtime, 'f32', [5], 20)).toThrow(`Expected bytes within 36 of ${file}, got 20..40`);
    expect(() => mapped.tensor(runtime, 'f32', [1], -4)).toThrow('Expected bytes within 36');
  });

  it('that is missing or empty is an error', () => {
    expect(() => new MappedFile(runtime, join(folder, 'none.bin'))).toThrow(/ENOENT/);
    writeFileSync(join(folder, 'empty.bin'), '');
    expect(() => new MappedFile(runtime, join(folder, 'empty.bin'))).toThrow(/Cannot map .*empty\.bin \(0 bytes\)/);
  });

  it.each([0, 1, 2])('gives weights to sessions from offset %i on', async (offset) => {
    const elements = noise(SIZE * SIZE);
    const shifted = new Uint8Array(offset + elements.byteLength);
    shifted.set(new Uint8Array(elements.buffer), offset);
    const weightFile = join(folder, `offset-${offset}.bin`);
    writeFileSync(weightFile, shifted);
    using weights = new WeightTensors(
      runtime,
      new Map([[WEIGHT, { file: weightFile, offset, dtype: 'F32', shape: [SIZE, SIZE] }]]),
    );
    using fromFile = await BoundGraph.create(runtime, powerModel(SIZE, 2), [SIZE, SIZE], {
      initializers: new Map([[WEIGHT, weights.get(WEIGHT)]]),
    });
    using own = OwnedTensor.over(runtime, 'f32', [SIZE, SIZE], elements);
    using fromMemory = await BoundGraph.create(runtime, powerModel(SIZE, 2), [SIZE, SIZE], {
      initializers: new Map([[WEIGHT, own]]),
    });
    expect(await resultOf(fromFile)).toEqual(await resultOf(fromMemory));
  });
});

describe('a set of weights', () => {
  it('names what it does not have, and types that graphs cannot take', () => {
    using weights = new WeightTensors(runtime, new Map([['odd', { file: 'unread', offset: 0, dtype: 'F8_E4M3', shape: [1] }]]));
    expect(weights.has('odd')).toBe(true);
    expect(weights.has('none')).toBe(false);
    expect(() => weights.get('none')).toThrow('There is no weight none');
    expect(() => weights.get('odd')).toThrow('Weight odd has the type F8_E4M3');
  });
});
