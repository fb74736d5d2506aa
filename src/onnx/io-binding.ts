/** The tensors of a run, and the run itself. */
import { AbortedError } from '../core/aborted-error.ts';
import { DisposedError } from '../core/disposed-error.ts';
import { callAsync, check, type Handle, make } from './api.ts';
import { countCreated, countReleased } from './live-objects.ts';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';
import type { Session } from './session.ts';
import type { OwnedTensor } from './tensor.ts';

export class IoBinding implements Disposable {
  readonly #session: Session;
  readonly #runOptions: Handle;
  readonly #bound = new Map<string, OwnedTensor>();
  readonly #inputs: ReadonlySet<string>;
  readonly #outputs: ReadonlySet<string>;
  #handle: Handle | null;
  #running = false;

  constructor(session: Session) {
    const { api } = session.runtime;
    this.#session = session;
    this.#inputs = new Set(session.inputNames);
    this.#outputs = new Set(session.outputNames);
    this.#handle = make(api, 'createIoBinding', [session.handle], 'create a binding');
    this.#runOptions = make(api, 'createRunOptions', [], 'create run options');
    countCreated('binding');
  }

  /**
   * Binds a tensor to a graph input. On the CPU the tensor is read in place when the run starts, so that its contents
   * may change between runs without binding again; elsewhere host tensors are copied at each call.
   */
  input(name: string, tensor: OwnedTensor): void {
    if (this.#bound.get(name) === tensor && this.#session.device.kind === 'cpu') return;
    this.#expect(this.#inputs, 'input', name);
    const { api } = this.#session.runtime;
    check(api, api.bindInput(this.#live(), name, tensor.handle), `bind the input ${name}`);
    this.#bound.set(name, tensor);
  }

  /** Binds the memory that a graph output is written to. Its shape must be what the run produces. */
  output(name: string, tensor: OwnedTensor): void {
    if (this.#bound.get(name) === tensor) return;
    this.#expect(this.#outputs, 'output', name);
    const { api } = this.#session.runtime;
    check(api, api.bindOutput(this.#live(), name, tensor.handle), `bind the output ${name}`);
    this.#bound.set(name, tensor);
  }

  /**
   * Runs the graph off the JavaScript thread. An abort terminates the run between two operators.
   * @throws AbortedError when the signal ended it; what the outputs then hold is undefined.
   */
  async run(signal?: AbortSignal): Promise<void> {
    const { api } = this.#session.runtime;
    const binding = this.#live();
    if (this.#running) throw new OnnxRuntimeError('FAIL', 'A binding serves one run at a time, and one is in flight');
    if (signal?.aborted) throw new AbortedError('A run', signal.reason);
    for (const [name, tensor] of this.#bound) if (tensor.disposed) throw new DisposedError(`The tensor bound to ${name}`);
    const terminate = () => api.runOptionsSetTerminate(this.#runOptions);
    signal?.addEventListener('abort', terminate, { once: true });
    this.#running = true;
    try {
      await callAsync(api, 'runWithBinding', [this.#session.handle, this.#runOptions, binding], 'run a graph');
    } catch (error) {
      if (signal?.aborted) throw new AbortedError('A run', error);
      throw error;
    } finally {
      this.#running = false;
      signal?.removeEventListener('abort', terminate);
      // A terminate that came too late for this run must not end the next one.
      if (signal?.aborted) api.runOptionsUnsetTerminate(this.#runOptions);
    }
  }

  #live(): Handle {
    if (this.#handle === null) throw new DisposedError('A binding');
    return this.#handle;
  }

  #expect(names: ReadonlySet<string>, kind: string, name: string): void {
    if (names.has(name)) return;
    throw new OnnxRuntimeError('INVALID_ARGUMENT', `Expected an ${kind} among ${[...names].join(', ')}, got ${name}`);
  }

  [Symbol.dispose](): void {
    if (this.#handle === null) return;
    if (this.#running) throw new OnnxRuntimeError('FAIL', 'A binding cannot be disposed of while its run is in flight');
    this.#session.runtime.api.releaseIoBinding(this.#handle);
    this.#session.runtime.api.releaseRunOptions(this.#runOptions);
    this.#handle = null;
    this.#bound.clear();
    countReleased('binding');
  }
}
