/** `blockdraft bench-serve`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { benchServe } from '../bench/bench-serve.ts';
import { comparisonHtml, comparisonText, readResult } from '../bench/compare-results.ts';
import { htmlReport } from '../bench/html-report.ts';
import type { BenchResult } from '../bench/result-schema.ts';
import { ServerClient } from '../bench/server-client.ts';
import { textReport } from '../bench/text-report.ts';
import { AppError } from '../core/app-error.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import type { BenchServeCommandOptions } from './bench-serve-options.ts';
import { startOwnServer } from './own-server.ts';
import { runInterruptibly } from './run-interruptibly.ts';

const FAILED = 1;
const INTERRUPTED = 130;
const DEFAULT_URL = 'http://127.0.0.1:8000';

export async function runBenchServe(serveOptions: readonly string[], options: BenchServeCommandOptions): Promise<void> {
  await runInterruptibly(options.progress, async (signal, show) => {
    if (options.compare !== undefined) return compareSaved(options.compare, options);
    const prompts = readPrompts(options.datasetPath, { limit: options.numPrompts, seed: options.seed });
    const own = serverArguments(serveOptions, options);
    await using server = own === null ? null : await startOwnServer(own, signal);
    const result = await benchServe({
      client: new ServerClient(server?.url ?? options.baseUrl ?? DEFAULT_URL, options.apiKey ?? null),
      model: options.model ?? null,
      prompts,
      promptsFile: options.datasetPath,
      drafters: options.drafters ?? null,
      draftTokens: options.draftTokens,
      concurrency: [...options.maxConcurrency].sort((a, b) => a - b),
      temperatures: options.temperature,
      contextLengths: options.inputLen,
      outputLength: options.outputLen,
      ignoreEos: options.ignoreEos,
      seed: options.seed,
      repeats: options.repeats,
      percentiles: options.metricPercentiles,
      goals: options.goodput,
      signal,
      onProgress: (done, total) => show('Asking', String, done, total),
    });
    if (options.saveResult) save(result, options);
    process.stdout.write(options.json ? `${JSON.stringify(result, null, 2)}\n` : textReport(result));
    if (!result.complete) return INTERRUPTED;
    return result.points.some(({ failed }) => failed > 0) || result.lossless.differing.length > 0 ? FAILED : 0;
  });
}

/** Null when a server that runs is to be measured. */
function serverArguments(given: readonly string[], { target, drafter, baseUrl }: BenchServeCommandOptions): string[] | null {
  if (given.length === 0 && target === undefined && drafter.length === 0) return null;
  if (baseUrl !== undefined) {
    throw new AppError('invalid_config', 'Expected --base-url or options of a server to start, got both; leave one out');
  }
  return [...(target === undefined ? [] : ['--target', target]), ...drafter.flatMap((name) => ['--drafter', name]), ...given];
}

function save(result: BenchResult, { resultDir, resultFilename = 'bench-serve.json' }: BenchServeCommandOptions): void {
  mkdirSync(resultDir, { recursive: true });
  writeFileSync(join(resultDir, resultFilename), `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(join(resultDir, htmlName(resultFilename)), htmlReport(result));
}

/** The page has a name of its own, as the one of a measurement may lie in the same folder. */
function compareSaved(
  files: readonly string[],
  { saveResult, resultDir, resultFilename = 'bench-compare.json' }: BenchServeCommandOptions,
): number {
  const [first, second] = files;
  if (first === undefined || second === undefined || files.length > 2) {
    throw new AppError('invalid_config', `Expected two files behind --compare, got ${files.length}`);
  }
  const [a, b] = [readResult(first), readResult(second)];
  if (saveResult) {
    mkdirSync(resultDir, { recursive: true });
    writeFileSync(join(resultDir, htmlName(resultFilename)), comparisonHtml(a, b));
  }
  process.stdout.write(comparisonText(a, b));
  return 0;
}

function htmlName(name: string): string {
  return `${name.replace(/\.json$/, '')}.html`;
}
