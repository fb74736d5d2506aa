/** The part of OrtApi (onnxruntime_c_api.h) that is used here, as typed functions. */
import koffi, { type TypeObject } from 'koffi';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';

/** A native pointer. */
export type Handle = bigint;
/** A one-element array that the callee fills. */
export type Out = [Handle | null];

type Argument = Handle | number | string | Out | BigInt64Array | Uint8Array | BigUint64Array | null;
/** Returns an OrtStatus, null when all went well. */
type StatusFunction = ((...args: Argument[]) => Handle | null) & {
  async: (...args: [...Argument[], (error: unknown, status: Handle | null) => void]) => void;
};

const POINTER = 'void *';
const OUT = koffi.out(koffi.pointer(POINTER));

/** Slot in the table, and argument types. Slots never change their meaning between versions. */
const STATUS_FUNCTIONS = {
  createSessionFromArray: [8, [POINTER, POINTER, 'size_t', POINTER, OUT]],
  createSessionOptions: [10, [OUT]],
  setSessionGraphOptimizationLevel: [23, [POINTER, 'int']],
  sessionGetInputCount: [30, [POINTER, OUT]],
  sessionGetOutputCount: [31, [POINTER, OUT]],
  sessionGetInputName: [36, [POINTER, 'size_t', POINTER, OUT]],
  sessionGetOutputName: [37, [POINTER, 'size_t', POINTER, OUT]],
  createRunOptions: [39, [OUT]],
  runOptionsSetTerminate: [46, [POINTER]],
  runOptionsUnsetTerminate: [47, [POINTER]],
  createTensorAsOrtValue: [48, [POINTER, 'int64_t *', 'size_t', 'int', OUT]],
  createTensorWithDataAsOrtValue: [49, [POINTER, POINTER, 'size_t', 'int64_t *', 'size_t', 'int', OUT]],
  getTensorMutableData: [51, [POINTER, OUT]],
  createMemoryInfo: [68, ['str', 'int', 'int', 'int', OUT]],
  createCpuMemoryInfo: [69, ['int', 'int', OUT]],
  allocatorFree: [76, [POINTER, POINTER]],
  getAllocatorWithDefaultOptions: [78, [OUT]],
  createEnvWithGlobalThreadPools: [119, ['int', 'str', POINTER, OUT]],
  disablePerSessionThreads: [120, [POINTER]],
  createThreadingOptions: [121, [OUT]],
  addSessionConfigEntry: [130, [POINTER, 'str', 'str']],
  createAllocator: [131, [POINTER, POINTER, OUT]],
  runWithBinding: [133, [POINTER, POINTER, POINTER]],
  createIoBinding: [134, [POINTER, OUT]],
  bindInput: [136, [POINTER, 'str', POINTER]],
  bindOutput: [137, [POINTER, 'str', POINTER]],
  setGlobalIntraOpNumThreads: [147, [POINTER, 'int']],
  setGlobalInterOpNumThreads: [148, [POINTER, 'int']],
  setGlobalSpinControl: [149, [POINTER, 'int']],
  addInitializer: [150, [POINTER, 'str', POINTER]],
  createPrepackedWeightsContainer: [166, [OUT]],
  createSessionFromArrayWithPrepackedWeightsContainer: [169, [POINTER, POINTER, 'size_t', POINTER, POINTER, OUT]],
  appendExecutionProviderCuda: [204, [POINTER, POINTER]],
  createCudaProviderOptions: [205, [OUT]],
  updateCudaProviderOptions: [206, [POINTER, 'str *', 'str *', 'size_t']],
} as const satisfies Record<string, readonly [number, readonly unknown[]]>;

const RELEASE_FUNCTIONS = {
  releaseStatus: 93,
  releaseSession: 95,
  releaseValue: 96,
  releaseRunOptions: 97,
  releaseSessionOptions: 100,
  releaseThreadingOptions: 122,
  releaseAllocator: 132,
  releaseIoBinding: 135,
  releasePrepackedWeightsContainer: 167,
  releaseCudaProviderOptions: 208,
} as const;

type StatusName = keyof typeof STATUS_FUNCTIONS;
type ReleaseName = keyof typeof RELEASE_FUNCTIONS;

export type OrtApi = Readonly<Record<StatusName, StatusFunction>> &
  Readonly<Record<ReleaseName, (handle: Handle) => void>> & {
    readonly getErrorCode: (status: Handle) => number;
    readonly getErrorMessage: (status: Handle) => string;
  };

/** @param table address of the OrtApi function table */
export function bindApi(table: Handle): OrtApi {
  const functionAt = (slot: number, proto: TypeObject) => koffi.decode(koffi.decode(table, slot * 8, POINTER), proto);
  const api: Record<string, unknown> = {
    getErrorCode: functionAt(1, koffi.proto('int', [POINTER])),
    getErrorMessage: functionAt(2, koffi.proto('str', [POINTER])),
  };
  for (const [name, [slot, types]] of Object.entries(STATUS_FUNCTIONS)) {
    api[name] = functionAt(slot, koffi.proto(POINTER, [...types] as never));
  }
  for (const [name, slot] of Object.entries(RELEASE_FUNCTIONS)) {
    api[name] = functionAt(slot, koffi.proto('void', [POINTER]));
  }
  return api as OrtApi;
}

/**
 * Turns an OrtStatus into an exception and releases it.
 * @param doing completes the sentence "ONNX Runtime failed to …"
 */
export function check(api: OrtApi, status: Handle | null, doing: string): void {
  if (status === null) return;
  const error = OnnxRuntimeError.fromStatus(api.getErrorCode(status), api.getErrorMessage(status), doing);
  api.releaseStatus(status);
  throw error;
}

/** Calls a function whose last argument is an out pointer, and returns what it made. */
export function make(api: OrtApi, name: StatusName, args: readonly Argument[], doing: string): Handle {
  const out: Out = [null];
  check(api, api[name](...args, out), doing);
  if (out[0] === null) throw new OnnxRuntimeError('FAIL', `ONNX Runtime failed to ${doing}: it returned no object`);
  return out[0];
}

/** Like {@link StatusFunction}, on a libuv worker thread: the event loop goes on meanwhile. */
export function callAsync(api: OrtApi, name: StatusName, args: readonly Argument[], doing: string): Promise<void> {
  return new Promise((resolve, reject) => {
    api[name].async(...args, (error, status) => {
      if (error !== null && error !== undefined) return reject(error);
      try {
        check(api, status, doing);
        resolve();
      } catch (failure) {
        reject(failure);
      }
    });
  });
}
