import { AppError, type AppErrorOptions } from '../core/app-error.ts';

/** OrtErrorCode by number (onnxruntime_c_api.h). */
const STATUS_NAMES = [
  'OK',
  'FAIL',
  'INVALID_ARGUMENT',
  'NO_SUCHFILE',
  'NO_MODEL',
  'ENGINE_ERROR',
  'RUNTIME_EXCEPTION',
  'INVALID_PROTOBUF',
  'MODEL_LOADED',
  'NOT_IMPLEMENTED',
  'INVALID_GRAPH',
  'EP_FAIL',
  'MODEL_LOAD_CANCELED',
  'MODEL_REQUIRES_COMPILATION',
  'NOT_FOUND',
] as const;

/** A failure that ONNX Runtime itself reported, or that kept its library from being used. */
export class OnnxRuntimeError extends AppError {
  override readonly name = 'OnnxRuntimeError';
  /** Name of the OrtErrorCode; `LIBRARY` when no ONNX Runtime call was reached. */
  readonly status: string;

  constructor(status: string, message: string, options: AppErrorOptions = {}) {
    super('onnx_runtime', message, options);
    this.status = status;
  }

  static fromStatus(code: number, message: string, doing: string): OnnxRuntimeError {
    const status = STATUS_NAMES[code] ?? `CODE_${code}`;
    return new OnnxRuntimeError(status, `ONNX Runtime failed to ${doing}: ${message} (${status})`, { details: { status } });
  }
}
