/** `serve --watch-drafter`: what a training run writes takes the place of a served drafter. */
import { realpathSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../core/app-error.ts';
import type { DrafterStatus, Engine } from '../engine/engine.ts';
import type { Logger } from '../server/logger.ts';
import { type Checkpoint, findCheckpoints } from '../validate/watch/checkpoints.ts';
import { realFolder } from './real-folder.ts';
import { RolledBack } from './rolled-back.ts';

export interface WatchedFolder {
  readonly name: string;
  readonly path: string;
}

/** @throws AppError `invalid_config` */
export function watchedFolders(words: readonly string[]): readonly WatchedFolder[] {
  const watched = words.map((text) => {
    const [, name, path] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
    if (name !== undefined && path !== undefined) return { name, path: realFolder(path) };
    throw new AppError(
      'invalid_config',
      `Expected --watch-drafter with name=folder, got ${text}; name a drafter that is served`,
    );
  });
  const twice = watched.find(({ name }, i) => watched.findIndex((other) => other.name === name) !== i);
  if (twice === undefined) return watched;
  throw new AppError(
    'invalid_config',
    `Expected one --watch-drafter for each drafter, got two for ${twice.name}; leave one out`,
  );
}

export interface WatchDrafterOptions {
  readonly engine: Pick<Engine, 'drafterStatus' | 'loadDrafter'>;
  /** Of the drafter whose place is taken. */
  readonly name: string;
  /** Of the run: its own folders are the checkpoints. */
  readonly folder: string;
  readonly pollMs: number;
  readonly signal: AbortSignal;
  readonly logger: Pick<Logger, 'warn'>;
}

/**
 * The newest complete checkpoint is swapped in once the swap before it is decided. Each is tried once, and none that is older
 * than the last one: what was rolled back or could not be loaded does not come again, and what was rolled back not after a
 * restart either. What comes of a swap, observers are told.
 * @returns when the signal aborts
 * @throws AppError `invalid_config` when no drafter has the name, or the folder is none
 */
export async function watchDrafter(options: WatchDrafterOptions): Promise<void> {
  const { engine, name, folder, pollMs, signal, logger } = options;
  const served = replaceable(engine, name).folder;
  const checkpoints = await findCheckpoints(folder);
  const rolledBack = new RolledBack(folder, name);
  let last = checkpoints.find((checkpoint) => realpathSync(checkpoint.folder) === served) ?? null;
  let complaint: string | null = null;
  while (!signal.aborted) {
    try {
      noteRollBack(options, last, rolledBack);
      const next = await newCheckpoint(options, last, rolledBack);
      if (next !== null && (await tried(engine, name, next))) last = next;
      complaint = null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== complaint) logger.warn({ drafter: name, folder, reason }, 'looking for checkpoints failed');
      complaint = reason;
    }
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
  noteRollBack(options, last, rolledBack);
}

function noteRollBack({ engine, name, folder, logger }: WatchDrafterOptions, last: Checkpoint | null, rolledBack: RolledBack) {
  const swap = replaceable(engine, name).swaps.at(-1);
  if (last === null || swap?.state !== 'rolled-back' || swap.path !== last.folder || rolledBack.has(last)) return;
  try {
    rolledBack.add(last, swap);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn({ drafter: name, folder, reason }, 'a checkpoint that was rolled back is tried again after a restart');
  }
}

async function newCheckpoint(
  { engine, name, folder }: WatchDrafterOptions,
  last: Checkpoint | null,
  rolledBack: RolledBack,
): Promise<Checkpoint | null> {
  if (replaceable(engine, name).swaps.at(-1)?.state === 'watching') return null;
  const found = await findCheckpoints(folder);
  return found.findLast((checkpoint) => checkpoint.step > (last?.step ?? -1) && !rolledBack.has(checkpoint)) ?? null;
}

/** @returns false when it has to be tried again, as another drafter is being loaded */
async function tried(engine: WatchDrafterOptions['engine'], name: string, { folder }: Checkpoint): Promise<boolean> {
  try {
    await engine.loadDrafter(name, folder);
    return true;
  } catch (error) {
    return !(error instanceof AppError && error.code === 'rate_limited');
  }
}

/** @throws AppError `invalid_config` when no drafter that can be replaced has the name */
export function replaceable(engine: Pick<Engine, 'drafterStatus'>, name: string): DrafterStatus {
  const found = engine.drafterStatus().find((drafter) => drafter.name === name && drafter.kind !== 'none');
  if (found !== undefined) return found;
  throw new AppError('invalid_config', `Expected --watch-drafter with the name of a drafter that is served, got ${name}`);
}
