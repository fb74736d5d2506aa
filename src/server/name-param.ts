import { AppError } from '../core/app-error.ts';

/** The fields of a request that hold what an engine knows by other names. */
export interface ParamNames {
  readonly prompt: string;
  readonly structure: string;
}

/** The error with the field that the caller knows: an engine knows prompts and structures, but not how they were sent. */
export function nameParam(error: unknown, names: ParamNames): unknown {
  if (!(error instanceof AppError)) return error;
  const { param } = error.details;
  if (error.code === 'context_length_exceeded' && param === undefined) return named(error, names.prompt);
  if (error.code === 'invalid_request' && param === 'structure') return named(error, names.structure);
  return error;
}

function named(error: AppError, param: string): AppError {
  return new AppError(error.code, error.message, { cause: error, details: { code: 'invalid_value', ...error.details, param } });
}
