/** `blockdraft validate --watch`. */
import { basename, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import type { Thresholds } from '../validate/report/gates.ts';
import { type NamedPath, watchRuns } from '../validate/watch/watch.ts';
import { watchText } from '../validate/watch/watch-page.ts';
import { chosenWeights } from './chosen-weights.ts';
import { runInterruptibly } from './run-interruptibly.ts';
import type { ValidateCommandOptions } from './validate-options.ts';
import { chosenDevice } from './validate-shared-options.ts';

const GATE_FAILED = 1;
const NOT_MEASURED = 2;
const INTERRUPTED = 130;

/** Runs until it is interrupted, or to the end of what is there with --once. */
export async function runWatch(options: ValidateCommandOptions, thresholds: Thresholds): Promise<void> {
  await runInterruptibly(options.progress, async (signal, show) => {
    const runs = options.watch.map((words) => namedPath(words, (path) => basename(resolve(path))));
    const [first] = runs;
    const complain = (complaint: string) => process.stderr.write(`blockdraft: ${complaint}\n`);
    const { watch, unmeasured } = await watchRuns({
      target: options.target,
      prompts: readPrompts(options.prompts, { limit: options.limit ?? null, seed: options.seed }),
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
      temperature: options.temperature[0] ?? 0,
      seed: options.seed,
      runs: distinct(runs),
      logs: options.trainingLog.map((words) => namedPath(words, () => first?.name ?? 'run')),
      out: options.out ?? null,
      once: options.once,
      pollSeconds: options.pollSeconds,
      thresholds,
      signal,
      onCheckpoint: (run, { step }) => process.stderr.write(`${run}: step ${step}\n`),
      onAnswer: (done, total) => show('Drafting behind every token', String, done, total),
      onMeasured: (measured) => process.stdout.write(options.once || options.json ? '' : watchText(measured)),
      onComplaint: complain,
    });
    process.stdout.write(options.json ? `${JSON.stringify(watch, null, 2)}\n` : watchText(watch));
    if (!options.once) return 0;
    if (signal.aborted) return INTERRUPTED;
    for (const run of unmeasured) complain(`the newest checkpoint of ${run} could not be measured, or there is none`);
    if (unmeasured.length > 0) return NOT_MEASURED;
    return watch.gates.every(({ passed }) => passed) ? 0 : GATE_FAILED;
  });
}

function namedPath(words: string, nameOf: (path: string) => string): NamedPath {
  const [, name, path = words] = /^([\w.-]+)=(.+)$/.exec(words) ?? [];
  return { name: name ?? nameOf(path), path };
}

function distinct(runs: readonly NamedPath[]): readonly NamedPath[] {
  const twice = runs.find(({ name }, i) => runs.findIndex((run) => run.name === name) !== i);
  if (twice === undefined) return runs;
  throw new AppError(
    'invalid_config',
    `Expected runs of different names, got ${twice.name} twice; name them with --watch name=folder`,
  );
}
