import { AppError } from './app-error.ts';

/** Something was used after its owner disposed of it. */
export class DisposedError extends AppError {
  override readonly name = 'DisposedError';

  constructor(what: string) {
    super('disposed', `${what} was used after it was disposed`);
  }
}
