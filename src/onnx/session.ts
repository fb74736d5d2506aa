/** A graph ready to run. */
import koffi from 'koffi';
import { DisposedError } from '../core/disposed-error.ts';
import { callAsync, check, type Handle, make, type OrtApi, type Out } from './api.ts';
import { appendExecutionProvider, CPU, type Device } from './device.ts';
import { IoBinding } from './io-binding.ts';
import { countCreated, countReleased } from './live-objects.ts';
import type { PrepackedWeights } from './prepacked-weights.ts';
import type { OnnxRuntime } from './runtime.ts';
import type { OwnedTensor } from './tensor.ts';

export interface SessionOptions {
  /**
   * Values of initializers that the graph declares without data. They are used in place, not copied, and must outlive
   * the session. Sessions that are given the same tensors share them.
   */
  readonly initializers?: ReadonlyMap<string, OwnedTensor>;
  readonly prepacked?: PrepackedWeights;
  readonly device?: Device;
  /** Further session configuration entries of ONNX Runtime. */
  readonly config?: Readonly<Record<string, string>>;
}

const ALL_OPTIMIZATIONS = 99;
/** All but those that rewrite graphs and weights for a kind of processor, for which values of weights are looked for in files. */
const EXTENDED_OPTIMIZATIONS = 2;

export class Session implements Disposable {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly device: Device;
  readonly runtime: OnnxRuntime;
  #handle: Handle | null;

  private constructor(runtime: OnnxRuntime, handle: Handle, device: Device) {
    this.runtime = runtime;
    this.#handle = handle;
    this.device = device;
    this.inputNames = readNames(runtime, handle, 'Input');
    this.outputNames = readNames(runtime, handle, 'Output');
    countCreated('session');
  }

  /**
   * @param model serialised ModelProto
   * @throws OnnxRuntimeError with ONNX Runtime's message when the graph is refused
   */
  static async create(runtime: OnnxRuntime, model: Uint8Array, options: SessionOptions = {}): Promise<Session> {
    const { api } = runtime;
    const device = options.device ?? CPU;
    const unpacked = device.kind === 'cpu' && device.unpacked === true;
    const prepacked = unpacked ? undefined : options.prepacked;
    const sessionOptions = make(api, 'createSessionOptions', [], 'create session options');
    try {
      check(api, api.disablePerSessionThreads(sessionOptions), 'use the shared threads');
      const level = unpacked || device.kind === 'cuda' ? EXTENDED_OPTIMIZATIONS : ALL_OPTIMIZATIONS;
      check(api, api.setSessionGraphOptimizationLevel(sessionOptions, level), 'set the optimisation level');
      const config = {
        'session.model_external_initializers_file_folder_path': import.meta.dirname,
        ...(unpacked ? { 'session.disable_prepacking': '1' } : {}),
        ...options.config,
      };
      for (const [key, value] of Object.entries(config)) {
        check(api, api.addSessionConfigEntry(sessionOptions, key, value), `set ${key}`);
      }
      for (const [name, tensor] of options.initializers ?? []) {
        check(api, api.addInitializer(sessionOptions, name, tensor.handle), `share the initializer ${name}`);
      }
      appendExecutionProvider(api, sessionOptions, device);
      const out: Out = [null];
      if (prepacked === undefined) {
        const args = [runtime.environment, model, model.byteLength, sessionOptions, out];
        await callAsync(api, 'createSessionFromArray', args, 'load a graph');
      } else {
        const args = [runtime.environment, model, model.byteLength, sessionOptions, prepacked.handle, out];
        await callAsync(api, 'createSessionFromArrayWithPrepackedWeightsContainer', args, 'load a graph');
      }
      return new Session(runtime, out[0] as Handle, device);
    } finally {
      api.releaseSessionOptions(sessionOptions);
    }
  }

  /** OrtSession*. */
  get handle(): Handle {
    if (this.#handle === null) throw new DisposedError('A session');
    return this.#handle;
  }

  /** A set of input and output tensors to run with. One binding serves one run at a time. */
  createBinding(): IoBinding {
    return new IoBinding(this);
  }

  /** Its bindings must be gone, and no run in flight. */
  [Symbol.dispose](): void {
    if (this.#handle === null) return;
    this.runtime.api.releaseSession(this.#handle);
    this.#handle = null;
    countReleased('session');
  }
}

function readNames(runtime: OnnxRuntime, session: Handle, kind: 'Input' | 'Output'): string[] {
  const { api, hostAllocator } = runtime;
  const count = Number(make0(api, `sessionGet${kind}Count`, session));
  return Array.from({ length: count }, (_, index) => {
    const pointer = make(api, `sessionGet${kind}Name`, [session, index, hostAllocator], `read the name of ${kind} ${index}`);
    const name: string = koffi.decode.string(pointer);
    check(api, api.allocatorFree(hostAllocator, pointer), 'free a name');
    return name;
  });
}

/** Reads a count, for which null stands for zero: the out parameter is typed as a pointer. */
function make0(api: OrtApi, name: 'sessionGetInputCount' | 'sessionGetOutputCount', session: Handle): Handle {
  const out: Out = [null];
  check(api, api[name](session, out), 'count the inputs and outputs');
  return out[0] ?? 0n;
}
