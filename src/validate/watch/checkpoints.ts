/** Checkpoint folders that a training run writes. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readSafetensorsHeader } from '../../checkpoint/safetensors.ts';
import { AppError } from '../../core/app-error.ts';

export interface Checkpoint {
  readonly folder: string;
  /** The last number in its name. */
  readonly step: number;
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
    if (entry.isDirectory() && step !== undefined && (await isComplete(folder))) found.push({ folder, step: Number(step) });
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

/** A file shorter than its header says is being written. */
async function isComplete(folder: string): Promise<boolean> {
  if (!existsSync(join(folder, 'config.json'))) return false;
  const weights = readdirSync(folder).filter((name) => name.endsWith('.safetensors'));
  if (weights.length === 0) return false;
  try {
    JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
    for (const name of new Set([...weights, ...shards(folder)])) await readSafetensorsHeader(join(folder, name));
    return true;
  } catch {
    return false;
  }
}
