/** Checkpoint folders that a training run writes. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readSafetensorsHeader } from '../../checkpoint/safetensors.ts';
import { AppError } from '../../core/app-error.ts';

export interface Checkpoint {
  readonly folder: string;
  /** The last number in its name. */
  readonly step: number;
  /** Another one when its config or weights were written again. */
  readonly stamp: string;
}

/**
 * Folders with a config and weights, by step; one that is still being written is left out.
 * @param run folder of the run: its own folders are the checkpoints
 * @throws AppError `invalid_config` when it is no folder
 */
export async function findCheckpoints(run: string): Promise<readonly Checkpoint[]> {
  if (!existsSync(run) || !statSync(run).isDirectory()) {
    throw new AppError('invalid_config', `Expected the folder of a training run, got ${run}, which is none; check its path`);
  }
  const found: Checkpoint[] = [];
  for (const entry of readdirSync(run, { withFileTypes: true })) {
    const step = /(\d+)\D*$/.exec(entry.name)?.[1];
    const folder = join(run, entry.name);
    const stamp = entry.isDirectory() && step !== undefined ? await stampOf(folder) : null;
    if (stamp !== null) found.push({ folder, step: Number(step), stamp });
  }
  return found.sort((a, b) => a.step - b.step || basename(a.folder).localeCompare(basename(b.folder)));
}

/** Files of weights that are in several, some of which may not be there yet. */
function shards(folder: string): readonly string[] {
  const index = join(folder, 'model.safetensors.index.json');
  if (!existsSync(index)) return [];
  const { weight_map } = JSON.parse(readFileSync(index, 'utf8')) as { readonly weight_map: Readonly<Record<string, string>> };
  return Object.values(weight_map);
}

/** Of sizes and times, as reading the weights takes long. Null while they are written: a file is shorter than its header says. */
async function stampOf(folder: string): Promise<string | null> {
  const config = join(folder, 'config.json');
  if (!existsSync(config)) return null;
  const weights = readdirSync(folder).filter((name) => name.endsWith('.safetensors'));
  if (weights.length === 0) return null;
  const stamp = createHash('sha256');
  const add = (name: string) => {
    const { size, mtimeMs } = statSync(join(folder, name));
    stamp.update(`${name} ${size} ${mtimeMs}\n`);
  };
  try {
    JSON.parse(readFileSync(config, 'utf8'));
    add('config.json');
    for (const name of [...new Set([...weights, ...shards(folder)])].sort()) {
      await readSafetensorsHeader(join(folder, name));
      add(name);
    }
    return stamp.digest('hex');
  } catch {
    return null;
  }
}
