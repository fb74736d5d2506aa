/** Long work on a command line: progress, interrupts and exit codes. */
import { AppError } from '../core/app-error.ts';
import { createProgress, type ProgressForm, type ShowProgress } from './progress.ts';

const FAILED = 2;
const INTERRUPTED = 130;

/**
 * The first interrupt aborts the signal, the second ends the process.
 * @param work returns the exit code
 */
export async function runInterruptibly(
  form: ProgressForm,
  work: (signal: AbortSignal, show: ShowProgress) => Promise<number>,
): Promise<void> {
  const interrupted = new AbortController();
  const interrupt = () => {
    if (interrupted.signal.aborted) process.exit(INTERRUPTED);
    interrupted.abort();
  };
  process.on('SIGINT', interrupt);
  const progress = createProgress(form);
  try {
    process.exitCode = await work(interrupted.signal, progress.show);
  } catch (error) {
    process.stderr.write(`blockdraft: ${messageOf(error)}\n`);
    process.exitCode = interrupted.signal.aborted ? INTERRUPTED : FAILED;
  } finally {
    progress.end();
    process.removeListener('SIGINT', interrupt);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AppError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
