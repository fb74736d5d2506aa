/** `blockdraft diagnose`. */
import { AppError } from '../core/app-error.ts';
import { openRuntime } from '../onnx/runtime.ts';
import { type DiagnosisStage, diagnose } from '../validate/diagnose.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import type { DiagnoseCommandOptions } from './diagnose-options.ts';
import { formatDiagnosis } from './diagnose-report.ts';
import { createProgressBar, type ProgressBar } from './progress-bar.ts';

const FINDINGS = 1;
const FAILED = 2;

/** Prints a diagnosis and sets the exit code; an interrupt ends it. */
export async function runDiagnose(options: DiagnoseCommandOptions): Promise<void> {
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  const bars = new Map<DiagnosisStage, ProgressBar>();
  try {
    const diagnosis = await diagnose({
      runtime: openRuntime({ threads: options.threads }),
      target: options.target,
      drafter: options.drafter ?? `${options.target.replace(/[\\/]+$/, '')}-dflash`,
      prompts: readPrompts(options.prompts, { limit: options.limit ?? null, seed: options.seed }),
      weights: options.weights,
      maxTokens: options.maxTokens,
      cacheDir: options.cacheDir ?? null,
      signal: interrupted.signal,
      onProgress(stage, done, total) {
        const bar = bars.get(stage) ?? createProgressBar(`${stage[0]?.toUpperCase()}${stage.slice(1)}`, String);
        bars.set(stage, bar);
        bar.update(done, total);
        if (done >= total) bar.end();
      },
    });
    process.stdout.write(options.json ? `${JSON.stringify(diagnosis, null, 2)}\n` : formatDiagnosis(diagnosis));
    process.exitCode = diagnosis.healthy ? 0 : FINDINGS;
  } catch (error) {
    process.stderr.write(`blockdraft: ${messageOf(error)}\n`);
    process.exitCode = FAILED;
  } finally {
    for (const bar of bars.values()) bar.end();
    process.removeListener('SIGINT', interrupt);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AppError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
