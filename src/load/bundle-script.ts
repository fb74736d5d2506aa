/** Scripts and the threads that run them, each as one CommonJS module. */
import { resolve } from 'node:path';
import { build } from 'esbuild';
import { AppError } from '../core/app-error.ts';

const WORKER = resolve(import.meta.dirname, 'vu/vu-worker.ts');

/** Globals of a script that differ between virtual users, or change. */
const GLOBALS = { __VU: '__k6.vu', __ITER: '__k6.iteration', __ENV: '__k6.env' };

/**
 * @param file of the script
 * @throws AppError `invalid_config` for code that does not compile
 */
export async function bundleScript(file: string): Promise<string> {
  try {
    const { outputFiles } = await build({
      entryPoints: [file],
      bundle: true,
      write: false,
      format: 'cjs',
      platform: 'neutral',
      target: 'node20',
      external: ['k6', 'k6/*'],
      define: GLOBALS,
      // As modules are.
      banner: { js: '"use strict";' },
      logLevel: 'silent',
    });
    return outputFiles[0]!.text;
  } catch (error) {
    throw new AppError('invalid_config', `Expected a script that compiles, got ${(error as Error).message}`, { cause: error });
  }
}

let worker: Promise<string> | null = null;

/** The code of a virtual user's thread; built once. */
export function bundleWorker(): Promise<string> {
  worker ??= build({
    entryPoints: [WORKER],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'silent',
  }).then(({ outputFiles }) => outputFiles[0]!.text);
  return worker;
}
