/** Where figures come from: without it a figure cannot be compared with another. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import type { FittingPrompts } from '../recording/encoded-prompts.ts';
import type { Provenance } from './report-schema.ts';

const PACKAGE = new URL('../../../package.json', import.meta.url);

export interface ProvenanceOptions {
  readonly onnxRuntime: string;
  readonly target: string;
  readonly drafters: readonly { readonly name: string; readonly folder: string | null }[];
  readonly promptsFile: string;
  readonly prompts: FittingPrompts;
}

/** What ran, when and on which machine. */
export function hostProvenance() {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  return {
    date: new Date().toISOString(),
    version,
    commit: ownCommit(),
    node: process.version,
    cpu: cpuModel(),
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    command: commandLine(process.argv.slice(2)),
  };
}

export async function provenance(options: ProvenanceOptions): Promise<Provenance> {
  return {
    ...hostProvenance(),
    onnxRuntime: options.onnxRuntime,
    target: { folder: basename(options.target), sha256: await folderDigest(options.target) },
    drafters: await Promise.all(
      options.drafters.map(async ({ name, folder }) => ({
        name,
        folder: folder === null ? null : basename(folder),
        sha256: folder === null ? null : await folderDigest(folder),
      })),
    ),
    prompts: {
      file: basename(options.promptsFile),
      sha256: createHash('sha256').update(readFileSync(options.promptsFile)).digest('hex'),
      count: options.prompts.prompts.length,
      tooLong: [...options.prompts.tooLong],
    },
  };
}

/** sha256 over the names and contents of config.json and the weight files. */
export async function folderDigest(folder: string): Promise<string> {
  const hash = createHash('sha256');
  const names = readdirSync(folder).filter((name) => name === 'config.json' || name.endsWith('.safetensors'));
  for (const name of names.sort()) {
    hash.update(name);
    for await (const chunk of createReadStream(join(folder, name), { highWaterMark: 1 << 20 })) hash.update(chunk);
  }
  return hash.digest('hex');
}

/** As it could be typed again, but for keys: reports are passed on. */
export function commandLine(words: readonly string[]): string {
  const told = words.map((word, i) => {
    if (words[i - 1] === '--api-key') return '…';
    const [, name] = /^((?:-e|--env=)?API_KEY=|--api-key=)/.exec(word) ?? [];
    return name === undefined ? quoted(word) : `${name}…`;
  });
  return ['blockdraft', ...told].join(' ');
}

function ownCommit(): string | null {
  const cwd = import.meta.dirname;
  if (!existsSync(join(cwd, '../../../.git'))) return null;
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const dirty = git('status', '--porcelain', '--untracked-files=no', '.') !== '';
    return git('rev-parse', '--short', 'HEAD') + (dirty ? '+' : '');
  } catch {
    return null;
  }
}

function cpuModel(): string {
  const named = cpus()[0]?.model ?? 'unknown';
  if (named !== 'unknown' || process.platform !== 'linux') return named;
  return /model name\s*:\s*(.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? named;
}

function quoted(word: string): string {
  return /^[\w./=:,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
