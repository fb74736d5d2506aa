/** Runs a load test that a test has written. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type LoadTestOptions, type LoadTestResult, runLoadTest } from '../../src/load/load-test.ts';

export interface ScriptRun extends LoadTestResult {
  readonly log: readonly string[];
}

/** @param folder where the script is written, together with `files` */
export async function runScript(
  folder: string,
  script: string,
  options: Partial<LoadTestOptions> & { readonly files?: Readonly<Record<string, string>> } = {},
): Promise<ScriptRun> {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries({ ...options.files, 'script.ts': script })) writeFileSync(join(folder, name), text);
  const log: string[] = [];
  const { files: _, ...given } = options;
  const result = await runLoadTest({
    script: join(folder, 'script.ts'),
    env: {},
    signal: new AbortController().signal,
    onLog: (line) => log.push(line),
    ...given,
  });
  return { ...result, log };
}
