/** Where sessions run: the execution provider and its options. */
import { check, type Handle, make, type OrtApi } from './api.ts';

export type Device =
  | { readonly kind: 'cpu' }
  | {
      readonly kind: 'cuda';
      readonly deviceId: number;
      /** Further keys of ONNX Runtime's CUDA provider, e.g. `gpu_mem_limit`. */
      readonly options?: Readonly<Record<string, string>>;
    };

export const CPU: Device = { kind: 'cpu' };

/** Adds the device's execution provider to session options. The CPU provider is always there. */
export function appendExecutionProvider(api: OrtApi, sessionOptions: Handle, device: Device): void {
  if (device.kind === 'cpu') return;
  const cuda = make(api, 'createCudaProviderOptions', [], 'create CUDA options (is this a CUDA build of ONNX Runtime?)');
  try {
    const entries = Object.entries({ device_id: String(device.deviceId), ...device.options });
    const keys = entries.map(([key]) => key);
    const values = entries.map(([, value]) => value);
    check(api, api.updateCudaProviderOptions(cuda, keys as never, values as never, entries.length), 'set CUDA options');
    check(
      api,
      api.appendExecutionProviderCuda(sessionOptions, cuda),
      'use CUDA; its provider library and the CUDA libraries must be beside or on the loader path of ONNX Runtime',
    );
  } finally {
    api.releaseCudaProviderOptions(cuda);
  }
}
