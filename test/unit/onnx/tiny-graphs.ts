/** Graphs of a few operators, for tests of the layer that runs them. */
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import type { IoBinding } from '../../../src/onnx/io-binding.ts';
import type { OnnxRuntime } from '../../../src/onnx/runtime.ts';
import { Session, type SessionOptions } from '../../../src/onnx/session.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';

/** y = x + x, [4] of f32 */
export function doublingModel(): Uint8Array {
  const graph = new GraphBuilder();
  const x = graph.input('x', 'f32', [4]);
  graph.output(graph.node('Add', [x, x], { name: 'y' }), 'f32', [4]);
  return graph.build().model;
}

export const WEIGHT = 'w';

/** y = x wᵗ with t factors [size, size]; how long a run takes grows with both. x and y: [size, size] of f32 */
export function powerModel(size: number, factors: number): Uint8Array {
  const graph = new GraphBuilder();
  let product = graph.input('x', 'f32', [size, size]);
  const weight = graph.weight(WEIGHT, 'f32', [size, size]);
  for (let factor = 1; factor <= factors; factor++) {
    product = graph.node('MatMul', [product, weight], factor === factors ? { name: 'y' } : {});
  }
  graph.output(product, 'f32', [size, size]);
  return graph.build().model;
}

/** A session with a binding, and tensors bound to its x and y. Disposes of all of them. */
export class BoundGraph implements Disposable {
  readonly session: Session;
  readonly binding: IoBinding;
  readonly x: OwnedTensor<'f32'>;
  readonly y: OwnedTensor<'f32'>;

  private constructor(runtime: OnnxRuntime, session: Session, shape: readonly number[]) {
    this.session = session;
    this.binding = session.createBinding();
    this.x = OwnedTensor.allocate(runtime, 'f32', shape);
    this.y = OwnedTensor.allocate(runtime, 'f32', shape);
    this.binding.input('x', this.x);
    this.binding.output('y', this.y);
  }

  static async create(
    runtime: OnnxRuntime,
    model: Uint8Array,
    shape: readonly number[],
    options: SessionOptions = {},
  ): Promise<BoundGraph> {
    return new BoundGraph(runtime, await Session.create(runtime, model, options), shape);
  }

  [Symbol.dispose](): void {
    this.binding[Symbol.dispose]();
    this.session[Symbol.dispose]();
    this.x[Symbol.dispose]();
    this.y[Symbol.dispose]();
  }
}

/** The permutation matrix that moves every column one to the right, so that w^size is the identity. */
export function rotation(runtime: OnnxRuntime, size: number): OwnedTensor<'f32'> {
  const elements = new Float32Array(size * size);
  for (let row = 0; row < size; row++) elements[row * size + ((row + 1) % size)] = 1;
  return OwnedTensor.over(runtime, 'f32', [size, size], elements);
}
