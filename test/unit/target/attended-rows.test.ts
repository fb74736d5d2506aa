import { describe, expect, it } from 'vitest';
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import { cacheNames, declareSlot, slotAttention } from '../../../src/graph/slot-attention.ts';
import type { ElementType } from '../../../src/onnx/element-type.ts';
import { Session } from '../../../src/onnx/session.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { attendedRows, LEAST_SLOT_ROWS, sparePositions } from '../../../src/target/attended-rows.ts';
import { testRuntime } from '../../support/runtime.ts';

const HEADS = 2;

/** Attention of a sequence over itself, computed in pieces. */
class PiecewiseAttention {
  readonly #runtime = testRuntime();
  readonly #headDim: number;
  readonly #length: number;
  readonly #inputs: Readonly<Record<'query' | 'key' | 'value', Float32Array>>;

  constructor(headDim: number, length: number) {
    this.#headDim = headDim;
    this.#length = length;
    let state = 7;
    const draw = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 31 - 1;
    };
    const drawn = (width: number) => Float32Array.from({ length: length * width }, draw);
    this.#inputs = { query: drawn(HEADS * headDim), key: drawn(headDim), value: drawn(headDim) };
  }

  /** @returns [length, HEADS · headDim] */
  async run(piece: number): Promise<Float32Array> {
    const width = HEADS * this.#headDim;
    const graph = new GraphBuilder();
    const slot = declareSlot(graph, 0);
    for (const name of ['query', 'key', 'value'] as const) {
      graph.input(name, 'f32', [1, 'rows', name === 'query' ? width : this.#headDim]);
    }
    const shape = { heads: HEADS, kvHeads: 1, headDim: this.#headDim };
    const output = slotAttention(graph, slot, 'query', 'key', 'value', {
      ...shape,
      layer: 0,
      rotary: null,
      causal: true,
      window: null,
    });
    graph.output(output, 'f32', [1, 'rows', width]);
    using session = await Session.create(this.#runtime, graph.build().model);
    using binding = session.createBinding();
    using stack = new TensorStack(this.#runtime);
    const names = cacheNames(0, 0);
    const capacity = this.#length + sparePositions(this.#headDim);
    for (const [past, present] of [
      [names.pastKey, names.presentKey],
      [names.pastValue, names.presentValue],
    ] as const) {
      const cache = stack.make('f32', [1, 1, capacity, this.#headDim]);
      binding.input(past, cache);
      binding.output(present, cache);
    }
    const results = new Float32Array(this.#length * width);
    for (let start = 0; start < this.#length; start += piece) {
      const rows = Math.min(piece, this.#length - start);
      const attended = attendedRows(rows, start, this.#headDim);
      for (const name of ['query', 'key', 'value'] as const) {
        const rowWidth = name === 'query' ? width : this.#headDim;
        const tensor = stack.make('f32', [1, attended, rowWidth]);
        for (let row = 0; row < attended; row++) {
          const from = (start + Math.min(row, rows - 1)) * rowWidth;
          tensor.data.set(this.#inputs[name].subarray(from, from + rowWidth), row * rowWidth);
        }
        binding.input(name, tensor);
      }
      const total = stack.make('i32', []);
      const last = stack.make('i32', [1]);
      total.data[0] = start + attended;
      last.data[0] = start + attended - 1;
      binding.input(slot.total, total);
      binding.input(slot.lastPosition, last);
      const result = stack.make('f32', [1, attended, width]);
      binding.output(output, result);
      await binding.run();
      results.set(result.data.subarray(0, rows * width), start * width);
    }
    return results;
  }
}

/** Tensors that go together. */
class TensorStack implements Disposable {
  readonly #runtime: ReturnType<typeof testRuntime>;
  readonly #tensors: OwnedTensor[] = [];

  constructor(runtime: ReturnType<typeof testRuntime>) {
    this.#runtime = runtime;
  }

  make<T extends ElementType>(type: T, shape: readonly number[]): OwnedTensor<T> {
    const tensor = OwnedTensor.allocate(this.#runtime, type, shape);
    this.#tensors.push(tensor);
    return tensor;
  }

  [Symbol.dispose](): void {
    for (const tensor of this.#tensors) tensor[Symbol.dispose]();
  }
}

describe('attention with the rows that attendedRows asks for', () => {
  // 33 and 129 leave a tile of one row; heads of 256 dimensions come with tiles of few keys.
  it.each([
    [16, 300],
    [64, 300],
    [128, 300],
    [256, 300],
  ])('of heads of %i dimensions is the same to the bit in pieces of any size', async (headDim, length) => {
    const attention = new PiecewiseAttention(headDim, length);
    const whole = await attention.run(length);
    for (const piece of [1, 2, 3, 5, 8, 16, 17, 33, 64, 65, 100, 128, 129, 257]) {
      const same = Buffer.from((await attention.run(piece)).buffer).equals(Buffer.from(whole.buffer));
      expect(same, `pieces of ${piece}`).toBe(true);
    }
  });
});

describe('attendedRows', () => {
  it('is the number of rows but where a tile of one could be left', () => {
    const rows = Array.from({ length: 36 }, (_, i) => i + 1);
    expect(rows.filter((count) => attendedRows(count, 100, 128) !== count)).toEqual([1, 17, 33]);
    expect(attendedRows(1, 100, 128)).toBe(LEAST_SLOT_ROWS);
  });

  it('fills the last tile of keys that a row of wide heads sees to more than 64', () => {
    for (let cached = 0; cached < 300; cached++) {
      for (const rows of [1, 4, 5, 16, 64]) {
        const attended = attendedRows(rows, cached, 256);
        const tile = Math.floor((cached + rows - 1) / 128);
        expect(Math.min(cached + attended - 128 * tile, 128)).toBeGreaterThan(64);
        expect(attended - rows).toBeGreaterThanOrEqual(0);
        expect(attended - rows).toBeLessThanOrEqual(sparePositions(256));
        expect(attended % 16).not.toBe(1);
      }
    }
  });
});
