/** `blockdraft validate`. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import { csvReport } from '../validate/report/csv-report.ts';
import { htmlReport } from '../validate/report/html-report.ts';
import type { Report } from '../validate/report/report-schema.ts';
import { terminalReport } from '../validate/report/terminal-report.ts';
import { traceLines } from '../validate/trace/trace-lines.ts';
import { type Validation, type ValidationStage, validate } from '../validate/validate.ts';
import { chosenWeights } from './chosen-weights.ts';
import { formatBytes } from './format.ts';
import { runInterruptibly } from './run-interruptibly.ts';
import type { ValidateCommandOptions } from './validate-options.ts';
import { chosenDevice } from './validate-shared-options.ts';
import { runWatch } from './validate-watch.ts';

const GATE_FAILED = 1;
const NOT_LOSSLESS = 3;
const INTERRUPTED = 130;
const STAGES: Readonly<Record<ValidationStage, string>> = { decoding: 'Decoding with and without drafts', timing: 'Timing' };

/** Prints a report, writes the files of --out and sets the exit code. */
export async function runValidate(options: ValidateCommandOptions): Promise<void> {
  if (options.watch.length > 0) {
    await runWatch(options, thresholds(options));
    return;
  }
  await runInterruptibly(options.progress, async (signal, show) => {
    if (options.resume && options.out === undefined) {
      throw new AppError('invalid_config', 'Expected --out with --resume, got none; name the folder of the interrupted run');
    }
    if (options.minSpeedUp !== undefined && options.speedPrompts === 0) {
      throw new AppError(
        'invalid_config',
        'Expected --speed-prompts with --min-speed-up, got 0, which times nothing; leave one out',
      );
    }
    const validation = await validate({
      target: options.target,
      drafter: options.drafter,
      prompts: readPrompts(options.prompts, { limit: options.limit ?? null, seed: options.seed }),
      promptsFile: options.prompts,
      weights: await chosenWeights(options),
      device: chosenDevice(options),
      threads: options.threads,
      maxContext: options.maxContext ?? null,
      finalTap: options.finalTap,
      allowUnclaimed: options.allowUnclaimed,
      templateVariables: options.chatTemplateKwargs,
      cacheDir: options.cacheDir ?? null,
      concurrency: options.concurrency,
      maxTokens: options.maxTokens,
      temperatures: options.temperature,
      seed: options.seed,
      draftTokens: options.draftTokens ?? null,
      speedPrompts: options.speedPrompts,
      speedRepeats: options.speedRepeats,
      out: options.out ?? null,
      resume: options.resume,
      thresholds: thresholds(options),
      signal,
      onProgress: (what, done, total) => show(`Preparing ${what}`, formatBytes, done, total),
      onStage: (stage, done, total) => show(STAGES[stage], String, done, total),
    });
    await write(validation, options);
    process.stdout.write(options.json ? `${JSON.stringify(validation.report, null, 2)}\n` : terminalReport(validation.report));
    return exitCode(validation.report);
  });
}

function thresholds(options: ValidateCommandOptions) {
  const { minAcceptanceLength, minDraftAcceptanceRate, minFirstSlotAccuracy, minStreak, minSpeedUp, maxCalibrationError } =
    options;
  const all = { minAcceptanceLength, minDraftAcceptanceRate, minFirstSlotAccuracy, minStreak, minSpeedUp, maxCalibrationError };
  return Object.fromEntries(Object.entries(all).filter(([, threshold]) => threshold !== undefined));
}

async function write({ report, store }: Validation, { out, trace, target }: ValidateCommandOptions): Promise<void> {
  if (trace !== undefined) {
    mkdirSync(dirname(resolve(trace)), { recursive: true });
    writeFileSync(trace, '');
    for (const temperature of report.settings.temperatures) {
      for await (const line of traceLines(target, store.served(temperature))) appendFileSync(trace, `${line}\n`);
    }
  }
  if (out === undefined) return;
  mkdirSync(out, { recursive: true });
  const files = {
    'report.json': `${JSON.stringify(report, null, 2)}\n`,
    'report.html': htmlReport(report),
    ...csvReport(report),
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(out, name), content);
}

function exitCode({ complete, lossless, gates }: Report): number {
  if (lossless.differing.length > 0) return NOT_LOSSLESS;
  if (!complete) return INTERRUPTED;
  return gates.every(({ passed }) => passed) ? 0 : GATE_FAILED;
}
