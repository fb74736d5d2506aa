import { AppError, type AppErrorOptions } from '../core/app-error.ts';

/** A refusal by the rules of HTTP itself: a wrong method, path, content type or body size. */
export class HttpError extends AppError {
  override readonly name = 'HttpError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    options: AppErrorOptions & { readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super('invalid_request', message, options);
    this.status = status;
    this.headers = options.headers ?? {};
  }
}
