/** Finds and loads the ONNX Runtime shared library. The npm package is only its carrier: its JavaScript is never run. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import koffi, { type LibraryHandle } from 'koffi';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';

/** Names the library file to load instead of the installed package's. */
export const LIBRARY_VARIABLE = 'BLOCKDRAFT_ORT_LIBRARY';

/** C API version asked for. The table only ever grows, so newer libraries serve it too. */
export const API_VERSION = 21;

const FILE_PATTERNS: Readonly<Partial<Record<NodeJS.Platform, RegExp>>> = {
  linux: /^libonnxruntime\.so(\.\d+)*$/,
  darwin: /^libonnxruntime(\.\d+)*\.dylib$/,
  win32: /^onnxruntime\.dll$/,
};

/**
 * Path of the shared library: the environment variable's, else the one in the installed onnxruntime-node package.
 * @throws OnnxRuntimeError when there is none for this platform.
 */
export function resolveLibraryPath(
  environment: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
  arch: string = process.arch,
): string {
  const override = environment[LIBRARY_VARIABLE];
  if (override !== undefined && override !== '') {
    if (existsSync(override)) return override;
    throw new OnnxRuntimeError(
      'LIBRARY',
      `${LIBRARY_VARIABLE} names ${override}, which does not exist; unset it or correct the path`,
    );
  }
  const pattern = FILE_PATTERNS[platform];
  const folder = join(packageFolder(), 'bin', 'napi-v6', platform, arch);
  const file =
    pattern && existsSync(folder)
      ? readdirSync(folder)
          .sort()
          .find((name) => pattern.test(name))
      : undefined;
  if (file === undefined) {
    throw new OnnxRuntimeError(
      'LIBRARY',
      `No ONNX Runtime library for ${platform}-${arch} in the installed onnxruntime-node package; ` +
        `set ${LIBRARY_VARIABLE} to a libonnxruntime of version 1.${API_VERSION} or newer`,
    );
  }
  return join(folder, file);
}

function packageFolder(): string {
  try {
    return dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
  } catch (cause) {
    throw new OnnxRuntimeError(
      'LIBRARY',
      `The package onnxruntime-node is not installed; run npm ci, or set ${LIBRARY_VARIABLE}`,
      {
        cause,
      },
    );
  }
}

export interface LoadedLibrary {
  readonly path: string;
  readonly version: string;
  /** Address of the OrtApi function table. */
  readonly api: bigint;
}

// koffi unloads a library whose handle is garbage-collected; a later call would then jump into unmapped memory.
const keptAlive: LibraryHandle[] = [];
let configured = false;

/** @throws OnnxRuntimeError when the file is no ONNX Runtime, or one older than the API version asked for. */
export function loadLibrary(path: string, apiVersion: number = API_VERSION): LoadedLibrary {
  // Graph optimisation recurses deeply, and koffi's default call stacks are far smaller than a thread's.
  // The sizes can only be set before the first attempt to load a library, even one that fails.
  if (!configured) koffi.config({ sync_stack_size: 8 << 20, async_stack_size: 8 << 20, max_async_calls: 64 });
  configured = true;
  let handle: LibraryHandle;
  try {
    handle = koffi.load(path);
  } catch (cause) {
    throw new OnnxRuntimeError('LIBRARY', `Cannot load ${path} as a shared library: ${(cause as Error).message}`, { cause });
  }
  keptAlive.push(handle);
  let base: bigint;
  try {
    base = handle.func('OrtGetApiBase', 'void *', [])();
  } catch (cause) {
    throw new OnnxRuntimeError('LIBRARY', `${path} is not an ONNX Runtime library: it does not export OrtGetApiBase`, {
      cause,
    });
  }
  const getApi = koffi.decode(koffi.decode(base, 0, 'void *'), koffi.proto('void *', ['uint32_t']));
  const getVersion = koffi.decode(koffi.decode(base, 8, 'void *'), koffi.proto('str', []));
  const version: string = getVersion();
  const api: bigint | null = getApi(apiVersion);
  if (api === null) {
    throw new OnnxRuntimeError('LIBRARY', `${path} is ONNX Runtime ${version}, but 1.${apiVersion} or newer is needed`);
  }
  return { path, version, api };
}
