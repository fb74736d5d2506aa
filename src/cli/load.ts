/** `blockdraft load`. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { EXIT, type LoadProgress, runLoadTest } from '../load/load-test.ts';
import { summaryExport } from '../load/summary/summary-export.ts';
import { hostProvenance } from '../validate/report/provenance.ts';
import type { LoadOptions } from './load-options.ts';
import { createProgressBar } from './progress-bar.ts';

const SCRIPTS = resolve(import.meta.dirname, '../../load-tests');

export async function runLoad(script: string, options: LoadOptions): Promise<void> {
  const interrupted = new AbortController();
  const interrupt = () => {
    if (interrupted.signal.aborted) process.exit(EXIT.interrupted);
    interrupted.abort();
  };
  process.on('SIGINT', interrupt);
  const bar = createProgressBar(script, (ms) => `${Math.round(ms / 1000)} s`);
  const { vus, iterations, duration } = options;
  try {
    const result = await runLoadTest({
      script: scriptFile(script),
      // A script knows nothing of the machine; what it writes should tell where it comes from.
      env: { PROVENANCE: JSON.stringify(hostProvenance()), ...environment(), ...options.env },
      tags: options.tag,
      overrides: {
        ...(vus === undefined ? {} : { vus }),
        ...(iterations === undefined ? {} : { iterations }),
        ...(duration === undefined ? {} : { duration }),
      },
      colours: process.stdout.isTTY ?? false,
      signal: interrupted.signal,
      onLog: (line) => {
        bar.end();
        process.stderr.write(`${line}\n`);
      },
      onProgress: ({ elapsedMs, plannedMs }: LoadProgress) => {
        if (!options.quiet) bar.update(Math.min(elapsedMs, plannedMs), plannedMs);
      },
    });
    bar.end();
    for (const [target, text] of Object.entries(result.outputs)) write(target, text);
    if (options.summaryExport !== undefined) {
      write(options.summaryExport, `${JSON.stringify(summaryExport(result.data), null, 2)}\n`);
    }
    process.exitCode = result.exitCode;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    process.stderr.write(`blockdraft: ${error.message}\n`);
    process.exitCode = EXIT.invalidConfig;
  } finally {
    bar.end();
    process.removeListener('SIGINT', interrupt);
  }
}

/** A path, or the name of one of our own. */
function scriptFile(script: string): string {
  const own = resolve(SCRIPTS, `${script}.ts`);
  const file = existsSync(script) ? resolve(script) : own;
  if (existsSync(file)) return file;
  throw new AppError('invalid_config', `Expected a script or the name of one in load-tests/, got ${script}`);
}

function environment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function write(target: string, text: string): void {
  if (target === 'stdout') process.stdout.write(text);
  else if (target === 'stderr') process.stderr.write(text);
  else {
    mkdirSync(dirname(resolve(target)), { recursive: true });
    writeFileSync(target, text);
  }
}
