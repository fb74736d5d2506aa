import { type OnnxRuntime, openRuntime } from '../../src/onnx/runtime.ts';

/**
 * ONNX Runtime opens once in a process, with one number of threads; every test of a file asks for the same. How many that is
 * says the project of the file, in vitest.config.ts.
 */
export const TEST_THREADS = Number(process.env['TEST_THREADS'] ?? 2);

export function testRuntime(): OnnxRuntime {
  return openRuntime({ threads: TEST_THREADS });
}
