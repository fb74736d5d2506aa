/** Memory for inputs and outputs whose sizes change from run to run. */
import type { ElementType } from '../onnx/element-type.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { elementCount, OwnedTensor } from '../onnx/tensor.ts';

/** Shapes of one name that are kept. Some have the length of the context among them, and come once in a sequence. */
const MOST_VIEWS = 64;

/** Grows to the largest size asked for, and keeps one tensor for each recent shape, so that a repeated shape costs nothing. */
class StepTensor<T extends ElementType> implements Disposable {
  readonly #runtime: OnnxRuntime;
  readonly #type: T;
  readonly #views = new Map<string, OwnedTensor<T>>();
  #memory: OwnedTensor<T> | undefined;

  constructor(runtime: OnnxRuntime, type: T) {
    this.#runtime = runtime;
    this.#type = type;
  }

  /** A tensor of this shape over the memory, with whatever an earlier shape left in it; until many other shapes were asked for. */
  shaped(shape: readonly number[]): OwnedTensor<T> {
    const key = shape.join();
    const known = this.#views.get(key);
    if (known !== undefined) {
      this.#views.delete(key);
      this.#views.set(key, known);
      return known;
    }
    const elements = elementCount(shape);
    if (this.#memory === undefined || elementCount(this.#memory.shape) < elements) {
      this[Symbol.dispose]();
      const MARGIN = 1.5;
      this.#memory = OwnedTensor.allocate(this.#runtime, this.#type, [Math.ceil(elements * MARGIN)]);
    }
    const [oldest] = this.#views;
    if (oldest !== undefined && this.#views.size >= MOST_VIEWS) {
      oldest[1][Symbol.dispose]();
      this.#views.delete(oldest[0]);
    }
    const view = this.#memory.reshaped(shape);
    this.#views.set(key, view);
    return view;
  }

  [Symbol.dispose](): void {
    for (const view of this.#views.values()) view[Symbol.dispose]();
    this.#views.clear();
    this.#memory?.[Symbol.dispose]();
    this.#memory = undefined;
  }
}

/** One {@link StepTensor} per name. */
export class StepTensors implements Disposable {
  readonly #runtime: OnnxRuntime;
  readonly #tensors = new Map<string, StepTensor<ElementType>>();

  constructor(runtime: OnnxRuntime) {
    this.#runtime = runtime;
  }

  /** The memory of this name in this shape; a name always has the same type. */
  shaped<T extends ElementType>(name: string, type: T, shape: readonly number[]): OwnedTensor<T> {
    let tensor = this.#tensors.get(name);
    if (tensor === undefined) {
      tensor = new StepTensor<ElementType>(this.#runtime, type);
      this.#tensors.set(name, tensor);
    }
    return tensor.shaped(shape) as OwnedTensor<T>;
  }

  [Symbol.dispose](): void {
    for (const tensor of this.#tensors.values()) tensor[Symbol.dispose]();
    this.#tensors.clear();
  }
}
