/** Measures the checkpoints of training runs as they appear. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../core/app-error.ts';
import { replaceFile } from '../replace-file.ts';
import type { Thresholds } from '../report/gates.ts';
import { folderDigest } from '../report/provenance.ts';
import { type Checkpoint, findCheckpoints } from './checkpoints.ts';
import { type MeasureCheckpointOptions, measureCheckpoint } from './measure-checkpoint.ts';
import { checkNewest } from './newest-gates.ts';
import { overlayRuns } from './overlay.ts';
import { readTrainingLog } from './training-log.ts';
import { watchHtml } from './watch-page.ts';
import { type Watch, type WatchPoint, watchSchema } from './watch-schema.ts';

export interface NamedPath {
  readonly name: string;
  readonly path: string;
}

export interface WatchOptions extends MeasureCheckpointOptions {
  readonly runs: readonly NamedPath[];
  readonly logs: readonly NamedPath[];
  /** Folder for watch.json and watch.html, which are read again at the next start; null: none. */
  readonly out: string | null;
  /** End when all that is there was measured. */
  readonly once: boolean;
  readonly pollSeconds: number;
  /** For the newest checkpoint of each run. */
  readonly thresholds: Thresholds;
  readonly onCheckpoint: (run: string, checkpoint: Checkpoint) => void;
  readonly onMeasured: (watch: Watch) => void;
  /** Something is left out for now. Told once for each place. */
  readonly onComplaint: (complaint: string) => void;
}

export interface Watched {
  readonly watch: Watch;
  /** Runs whose newest checkpoint could not be measured, or that have none. */
  readonly unmeasured: readonly string[];
}

/**
 * A checkpoint that cannot be measured is passed over until it is written again; so is what is unusable in a training log.
 * @returns when the signal aborts, or with `once` when all is measured
 * @throws AppError `invalid_config` when a run is no folder, or `out` holds points of other models, prompts or settings
 */
export async function watchRuns(options: WatchOptions): Promise<Watched> {
  const { runs, out, once, onComplaint } = options;
  const signal = options.signal ?? new AbortController().signal;
  const conditions = await conditionsOf(options);
  if (out !== null) mkdirSync(out, { recursive: true });
  const points = new Map(earlierPoints(options, conditions).map((point) => [point.folder, point]));
  const failed = new Map<string, Checkpoint>();
  const told = new Set<string>();
  const complain = (place: string, complaint: string) => {
    if (told.has(place)) return;
    told.add(place);
    onComplaint(complaint);
  };
  const isKnown = ({ folder, stamp }: Checkpoint) => (points.get(folder) ?? failed.get(folder))?.stamp === stamp;
  const current = () => save(options, conditions, [...points.values()], complain);
  for (;;) {
    const next = await nextCheckpoint(runs, isKnown);
    if (next === null) {
      if (once || signal.aborted) break;
      await sleep(options.pollSeconds * 1000, undefined, { signal }).catch(() => undefined);
      continue;
    }
    const { run, checkpoint } = next;
    const { folder, stamp } = checkpoint;
    // What was measured of other weights in this place says nothing of these.
    points.delete(folder);
    failed.delete(folder);
    options.onCheckpoint(run, checkpoint);
    try {
      points.set(folder, await measureCheckpoint(run, checkpoint, options));
    } catch (error) {
      if (signal.aborted) break;
      failed.set(folder, checkpoint);
      const reason = error instanceof Error ? error.message : String(error);
      complain(`${folder} ${stamp}`, `${folder} is passed over: ${reason}`);
      continue;
    }
    options.onMeasured(current());
  }
  const watch = current();
  return { watch, unmeasured: runs.flatMap(({ name, path }) => (newestIsMeasured(path, watch, failed) ? [] : [name])) };
}

/** What figures depend on, apart from the checkpoint. */
async function conditionsOf(options: WatchOptions): Promise<string> {
  const { prompts, maxTokens, temperature, seed, weights, device, maxContext, finalTap, templateVariables } = options;
  return JSON.stringify({
    target: await folderDigest(options.target),
    prompts: createHash('sha256').update(JSON.stringify(prompts)).digest('hex'),
    ...{ maxTokens, temperature, seed, weights, device, maxContext, finalTap, templateVariables },
  });
}

/** The earliest step of any run first, so that runs can be compared at equal steps early. */
async function nextCheckpoint(runs: readonly NamedPath[], isKnown: (checkpoint: Checkpoint) => boolean) {
  let next: { readonly run: string; readonly checkpoint: Checkpoint } | null = null;
  for (const { name, path } of runs) {
    for (const found of await findCheckpoints(path)) {
      const checkpoint = { ...found, folder: resolve(found.folder) };
      if (isKnown(checkpoint)) continue;
      if (next === null || checkpoint.step < next.checkpoint.step) next = { run: name, checkpoint };
    }
  }
  return next;
}

function isOf(path: string, { folder }: { readonly folder: string }): boolean {
  return dirname(folder) === resolve(path);
}

function newestIsMeasured(path: string, { points }: Watch, failed: ReadonlyMap<string, Checkpoint>): boolean {
  const steps = points.filter((point) => isOf(path, point)).map(({ step }) => step);
  const failures = [...failed.values()].filter((checkpoint) => isOf(path, checkpoint)).map(({ step }) => step);
  return steps.length > 0 && Math.max(...steps) >= Math.max(...failures);
}

function save(
  options: WatchOptions,
  conditions: string,
  points: readonly WatchPoint[],
  complain: (place: string, complaint: string) => void,
): Watch {
  const runs = options.runs.map(({ name }) => name);
  const logged = options.logs.flatMap(({ name, path }) => {
    const log = readTrainingLog(path, name);
    if (log.complaint !== null) complain(path, log.complaint);
    return log.points;
  });
  const watch = watchSchema.parse({
    format: 'blockdraft-watch',
    formatVersion: 1,
    target: basename(options.target),
    conditions,
    points: points.toSorted((a, b) => runs.indexOf(a.run) - runs.indexOf(b.run) || a.step - b.step),
    logged,
    overlays: overlayRuns(runs, points, options.seed),
    gates: checkNewest(runs, points, options.thresholds),
  } satisfies Watch);
  if (options.out !== null) {
    replaceFile(join(options.out, 'watch.json'), `${JSON.stringify(watch)}\n`);
    replaceFile(join(options.out, 'watch.html'), watchHtml(watch));
  }
  return watch;
}

/** Points of an earlier watch over the same runs. */
function earlierPoints({ out, runs }: WatchOptions, conditions: string): readonly WatchPoint[] {
  const file = out === null ? null : join(out, 'watch.json');
  if (file === null || !existsSync(file)) return [];
  const parsed = watchSchema.safeParse(jsonOf(file));
  if (!parsed.success || parsed.data.conditions !== conditions) {
    throw new AppError(
      'invalid_config',
      `Expected ${file} to have been measured with the same target, prompts and settings, got others; choose another --out`,
    );
  }
  return parsed.data.points.filter((point) => runs.some(({ name, path }) => name === point.run && isOf(path, point)));
}

function jsonOf(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
