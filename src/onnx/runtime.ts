/** The process-wide ONNX Runtime environment: one library, one thread pool, the host allocator. */
import { bindApi, check, type Handle, make, type OrtApi } from './api.ts';
import { loadLibrary, resolveLibraryPath } from './library.ts';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';

export interface RuntimeOptions {
  /**
   * Threads that work on one run, the calling one included. Sessions share the pool: two sessions with a pool each
   * would spin against one another when they take turns, as a target and its drafter do.
   */
  readonly threads: number;
}

export interface OnnxRuntime {
  readonly api: OrtApi;
  /** OrtEnv*. */
  readonly environment: Handle;
  /** OrtAllocator* of host memory, owned by ONNX Runtime. */
  readonly hostAllocator: Handle;
  /** OrtMemoryInfo* of host memory. */
  readonly hostMemory: Handle;
  readonly version: string;
  readonly libraryPath: string;
  readonly threads: number;
}

let opened: OnnxRuntime | undefined;

/**
 * Opens the environment, or returns the one that is open: ONNX Runtime allows one in a process.
 * It lives until the process ends, as thread pools cannot be torn down while sessions may still exist.
 * @throws OnnxRuntimeError when the library cannot be used, or it is open with another number of threads.
 */
export function openRuntime(options: RuntimeOptions): OnnxRuntime {
  if (opened !== undefined) {
    if (opened.threads === options.threads) return opened;
    throw new OnnxRuntimeError(
      'INVALID_ARGUMENT',
      `Expected ${opened.threads} threads, as the runtime is already open, got ${options.threads}; start a new process to change it`,
    );
  }
  const library = loadLibrary(resolveLibraryPath());
  const api = bindApi(library.api);
  const threading = make(api, 'createThreadingOptions', [], 'create threading options');
  check(api, api.setGlobalIntraOpNumThreads(threading, options.threads), 'set the number of threads');
  check(api, api.setGlobalInterOpNumThreads(threading, 1), 'set the number of threads');
  check(api, api.setGlobalSpinControl(threading, 1), 'set the spinning of threads');
  // Errors come back as exceptions; the library need not print them as well.
  const FATAL_ONLY = 4;
  const environment = make(api, 'createEnvWithGlobalThreadPools', [FATAL_ONLY, 'blockdraft', threading], 'start');
  api.releaseThreadingOptions(threading);
  opened = {
    api,
    environment,
    hostAllocator: make(api, 'getAllocatorWithDefaultOptions', [], 'get the host allocator'),
    hostMemory: make(api, 'createCpuMemoryInfo', [0, 0], 'describe host memory'),
    version: library.version,
    libraryPath: library.path,
    threads: options.threads,
  };
  return opened;
}
