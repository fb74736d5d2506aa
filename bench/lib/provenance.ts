/** Where a result comes from: without it a number cannot be compared with another. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

export interface Provenance {
  readonly date: string;
  /** Of the commit that was measured; `+` behind it when the working tree differs from it. */
  readonly commit: string;
  readonly node: string;
  readonly onnxRuntime: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly command: string;
}

export function provenance(onnxRuntime: string): Provenance {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  const dirty = git('status', '--porcelain', '--untracked-files=no', 'src') !== '';
  return {
    date: new Date().toISOString(),
    commit: git('rev-parse', '--short', 'HEAD') + (dirty ? '+' : ''),
    node: process.version,
    onnxRuntime,
    cpu: cpuModel(),
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    command: ['bench', ...process.argv.slice(2)].join(' '),
  };
}

function cpuModel(): string {
  const named = cpus()[0]?.model ?? 'unknown';
  if (named !== 'unknown' || process.platform !== 'linux') return named;
  return /model name\s*:\s*(.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? named;
}
