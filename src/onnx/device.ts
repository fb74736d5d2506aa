/** Where sessions run: the execution provider and its options. */
import { check, type Handle, make, type OrtApi } from './api.ts';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';
import type { OnnxRuntime } from './runtime.ts';

export type Device =
  | {
      readonly kind: 'cpu';
      /**
       * Weights are used as they are given, neither packed nor converted at load. Slow; without it f16 graphs do not load, as
       * what ONNX Runtime does for these on a CPU cannot be shared between sessions and reads weights from files.
       */
      readonly unpacked?: true;
    }
  | {
      readonly kind: 'cuda';
      readonly deviceId: number;
      /** Further keys of ONNX Runtime's CUDA provider, e.g. `gpu_mem_limit`. */
      readonly options?: Readonly<Record<string, string>>;
    };

export const CPU: Device = { kind: 'cpu' };

/**
 * Finds out whether a device can be used, before anything is prepared for it.
 * @throws OnnxRuntimeError saying what is missing for CUDA
 */
export function requireDevice({ api }: OnnxRuntime, device: Device): void {
  const sessionOptions = make(api, 'createSessionOptions', [], 'create session options');
  try {
    appendExecutionProvider(api, sessionOptions, device);
  } finally {
    api.releaseSessionOptions(sessionOptions);
  }
}

/**
 * Adds the device's execution provider to session options. The CPU provider is always there.
 * @throws OnnxRuntimeError saying what is missing for CUDA
 */
export function appendExecutionProvider(api: OrtApi, sessionOptions: Handle, device: Device): void {
  if (device.kind === 'cpu') return;
  try {
    appendCuda(api, sessionOptions, device.deviceId, device.options ?? {});
  } catch (cause) {
    if (cause instanceof OnnxRuntimeError) throw cudaUnavailable(cause);
    throw cause;
  }
}

function appendCuda(api: OrtApi, sessionOptions: Handle, deviceId: number, options: Readonly<Record<string, string>>): void {
  const cuda = make(api, 'createCudaProviderOptions', [], 'create CUDA options');
  try {
    const entries = Object.entries({ device_id: String(deviceId), ...options });
    const keys = entries.map(([key]) => key);
    const values = entries.map(([, value]) => value);
    check(api, api.updateCudaProviderOptions(cuda, keys as never, values as never, entries.length), 'set CUDA options');
    check(api, api.appendExecutionProviderCuda(sessionOptions, cuda), 'use CUDA');
  } finally {
    api.releaseCudaProviderOptions(cuda);
  }
}

function cudaUnavailable(cause: OnnxRuntimeError): OnnxRuntimeError {
  // ONNX Runtime puts the place in its own source before the reason.
  const reason = cause.message
    .replace(/^.*\[ONNXRuntimeError\] : \d+ : \w+ : /s, '')
    .replace(/\s+/g, ' ')
    .trim();
  return new OnnxRuntimeError(
    cause.status,
    `CUDA cannot be used (${reason}); install the provider libraries of ONNX Runtime's GPU package, of the same version, beside ` +
      'its library and put the CUDA libraries they link on the loader path, or use --device cpu, which needs neither',
    { cause, details: cause.details },
  );
}
