import { type OnnxRuntime, openRuntime } from '../../src/onnx/runtime.ts';

/** ONNX Runtime opens once in a process, with one number of threads; every test asks for the same. */
export const TEST_THREADS = 2;

export function testRuntime(): OnnxRuntime {
  return openRuntime({ threads: TEST_THREADS });
}
