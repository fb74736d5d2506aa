/** Measures drafters for the server in a process of its own: its memory, threads and event loop are not the server's. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import { parseFinalTaps } from '../drafter/dflash/final-taps.ts';
import type {
  Settings,
  ValidatedDrafter,
  ValidationProgress,
  ValidationRunner,
  ValidationTask,
} from '../server/validation/validation-runner.ts';
import type { ServeOptions } from './serve-options.ts';

const BIN = resolve(import.meta.dirname, '../../bin/blockdraft.js');
/** Results beyond this are not taken. */
const MAX_RESULT_BYTES = 64 * 2 ** 20;
const MAX_ERROR_LENGTH = 4000;
/** Exit codes with which there is no result. */
const FAILED = 2;

export type ServedModels = Pick<
  ServeOptions,
  'target' | 'device' | 'weights' | 'threads' | 'maxContext' | 'cacheDir' | 'finalTap' | 'allowUnclaimed'
>;

/** Runs the commands of this command line on the models of a server, at the lowest priority and on half of its threads. */
export function validationProcess(served: ServedModels): ValidationRunner {
  return {
    async run(task, onProgress, signal) {
      const folder = mkdtempSync(join(tmpdir(), 'blockdraft-job-'));
      try {
        const child = spawn(process.execPath, [BIN, ...jobCommand(task, served, folder)], {
          stdio: ['ignore', 'pipe', 'pipe'],
          env: ownEnvironment(),
        });
        // Threads that it starts inherit it.
        if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
        return await outcomeOf(child, onProgress, signal);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}

/**
 * The command of a task, on the models as they are served.
 * @param folder for its prompts
 */
export function jobCommand(task: ValidationTask, served: ServedModels, folder: string): string[] {
  const { kind, drafters, prompts, settings } = task;
  const given = (name: string, value: Settings[string] | undefined): string[] => {
    if (value === undefined) return [];
    if (value === true) return [`--${name}`];
    return [value].flat().flatMap((one) => [`--${name}`, `${one}`]);
  };
  const flagsOf = (fields: Settings) =>
    Object.entries(fields).flatMap(([name, value]) => given(name.replaceAll('_', '-'), value));
  if (kind === 'export-hard') {
    const { validation, ...rest } = settings;
    return [kind, ...flagsOf(rest), '--json', `${validation}`];
  }
  const file = join(folder, 'prompts.jsonl');
  if (prompts !== null) writeFileSync(file, prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(''));
  const common = [
    ...given('target', resolve(served.target)),
    ...given('threads', Math.max(1, Math.floor(served.threads / 2))),
    ...given('cache-dir', served.cacheDir),
    ...given('final-tap', finalTapOf(task, served)),
    ...given('allow-unclaimed', served.allowUnclaimed || undefined),
    ...given('prompts', prompts === null ? undefined : file),
    ...flagsOf(settings),
    ...['--json', '--progress', 'json'],
  ];
  const [first] = drafters;
  if (kind === 'diagnose') return [kind, ...given('drafter', first?.folder ?? first?.kind), ...common];
  // Later options win, so that a request may ask for other weights. It is measured on the CPU, which has formats of its own.
  const weights = served.device === 'cpu' ? served.weights : undefined;
  const measuring = [...given('weights', weights), ...given('max-context', served.maxContext), ...common];
  switch (kind) {
    case 'validate':
      return [kind, ...given('drafter', namedDrafter(first as ValidatedDrafter)), ...measuring];
    case 'watch':
      // A job that never ends would let no other one run.
      return ['validate', ...measuring, '--once'];
    case 'record':
      return [kind, ...given('drafter', first?.folder ?? undefined), ...measuring];
    case 'compare':
      return [kind, ...measuring, ...drafters.map(namedDrafter)];
  }
}

/** What the server was told of the drafters of a task. */
function finalTapOf({ kind, drafters }: ValidationTask, { finalTap }: ServedModels): readonly string[] {
  const { others, named } = parseFinalTaps(finalTap);
  const forAll = others === null ? [] : [others];
  if (kind === 'diagnose' || kind === 'record') return [named.get(drafters[0]?.name ?? '') ?? forAll].flat();
  return [...forAll, ...drafters.flatMap(({ name }) => (named.has(name) ? [`${name}=${named.get(name)}`] : []))];
}

function namedDrafter({ name, kind, folder }: ValidatedDrafter): string {
  const what = folder ?? kind;
  return /^[\w.-]+$/.test(name) ? `${name}=${what}` : what;
}

/** Options of the server are not the command's, and its keys are nobody's. */
function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('BLOCKDRAFT_')));
}

async function outcomeOf(child: ChildProcess, onProgress: (progress: ValidationProgress) => void, signal: AbortSignal) {
  // Nothing of an unfinished measurement is wanted, so there is nothing to wait for.
  const kill = () => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill);
  if (signal.aborted) kill();
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout!.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > MAX_RESULT_BYTES) kill();
    else chunks.push(chunk);
  });
  let said = '';
  createInterface({ input: child.stderr! }).on('line', (line) => {
    const progress = progressOf(line);
    if (progress !== null) onProgress(progress);
    else said = `${said}${line}\n`.slice(-MAX_ERROR_LENGTH);
  });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (signal.aborted) throw new AbortedError('Measuring a drafter');
    if (code === null || code === FAILED || chunks.length === 0) {
      throw new AppError('internal', said.replace(/^blockdraft: /, '').trim() || `The measurement ended with ${code}`);
    }
    return { exitCode: code, result: JSON.parse(Buffer.concat(chunks).toString()) as unknown };
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function progressOf(line: string): ValidationProgress | null {
  if (!line.startsWith('{"progress":')) return null;
  return (JSON.parse(line) as { readonly progress: ValidationProgress }).progress;
}
