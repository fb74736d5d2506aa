/** Long work on a command line: progress bars, interrupts and exit codes. */
import { AppError } from '../core/app-error.ts';
import { createProgressBar, type ProgressBar } from './progress-bar.ts';

const FAILED = 2;
const INTERRUPTED = 130;

export type ShowProgress = (label: string, unit: (amount: number) => string, done: number, total: number) => void;

/**
 * The first interrupt aborts the signal, the second ends the process.
 * @param work returns the exit code
 */
export async function runInterruptibly(work: (signal: AbortSignal, show: ShowProgress) => Promise<number>): Promise<void> {
  const interrupted = new AbortController();
  const interrupt = () => {
    if (interrupted.signal.aborted) process.exit(INTERRUPTED);
    interrupted.abort();
  };
  process.on('SIGINT', interrupt);
  const bars = new Map<string, ProgressBar>();
  try {
    process.exitCode = await work(interrupted.signal, (label, unit, done, total) => {
      const bar = bars.get(label) ?? createProgressBar(label, unit);
      bars.set(label, bar);
      bar.update(done, total);
      if (done >= total) bar.end();
    });
  } catch (error) {
    process.stderr.write(`blockdraft: ${messageOf(error)}\n`);
    process.exitCode = interrupted.signal.aborted ? INTERRUPTED : FAILED;
  } finally {
    for (const bar of bars.values()) bar.end();
    process.removeListener('SIGINT', interrupt);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AppError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
