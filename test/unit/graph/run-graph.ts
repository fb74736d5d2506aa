import type { GraphBuilder, GraphType } from '../../../src/graph/graph-builder.ts';
import type { ElementView } from '../../../src/onnx/element-type.ts';
import { Session } from '../../../src/onnx/session.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { testRuntime } from '../../support/runtime.ts';

export interface Elements {
  readonly type: GraphType;
  readonly shape: readonly number[];
  readonly data: ElementView<GraphType>;
}

/**
 * Runs a graph once.
 * @param weights a value for each weight that the graph declares
 * @param output name and shape of an output of f32
 */
export async function runGraph(
  graph: GraphBuilder,
  weights: Readonly<Record<string, ElementView<GraphType>>>,
  inputs: Readonly<Record<string, Elements>>,
  output: { readonly name: string; readonly shape: readonly number[] },
): Promise<Float32Array> {
  const runtime = testRuntime();
  const built = graph.build();
  using owned = new OwnedTogether();
  const initializers = new Map(
    built.weights.map(({ name, type, shape }) => {
      const data = weights[name];
      if (data === undefined) throw new Error(`The test gives no weight ${name}`);
      return [name, owned.use(OwnedTensor.over(runtime, type, shape, data))];
    }),
  );
  const session = owned.use(await Session.create(runtime, built.model, { initializers }));
  const binding = owned.use(session.createBinding());
  for (const [name, { type, shape, data }] of Object.entries(inputs)) {
    binding.input(name, owned.use(OwnedTensor.over(runtime, type, shape, data)));
  }
  const result = owned.use(OwnedTensor.allocate(runtime, 'f32', output.shape));
  binding.output(output.name, result);
  await binding.run();
  return result.data.slice();
}

/** Disposes in reverse order. */
class OwnedTogether implements Disposable {
  readonly #members: Disposable[] = [];

  use<T extends Disposable>(member: T): T {
    this.#members.push(member);
    return member;
  }

  [Symbol.dispose](): void {
    for (const member of this.#members.reverse()) member[Symbol.dispose]();
  }
}

/** Numbers without a pattern, from -1 to 1; the same for the same salt. */
export function noise(length: number, salt = 0): Float32Array<ArrayBuffer> {
  let state = (salt * 7919 + 1) >>> 0;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}
