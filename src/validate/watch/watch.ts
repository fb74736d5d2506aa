/** Measures the checkpoints of training runs as they appear. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../core/app-error.ts';
import { type Checkpoint, findCheckpoints } from './checkpoints.ts';
import { type MeasureCheckpointOptions, measureCheckpoint } from './measure-checkpoint.ts';
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
  readonly onCheckpoint: (run: string, checkpoint: Checkpoint) => void;
  readonly onMeasured: (watch: Watch) => void;
  /** A checkpoint that cannot be measured is passed over. */
  readonly onFailed: (checkpoint: Checkpoint, error: unknown) => void;
}

/** @returns when the signal aborts, or with `once` when all is measured */
export async function watchRuns(options: WatchOptions): Promise<Watch> {
  const conditions = JSON.stringify({
    prompts: options.prompts.map(({ id }) => id),
    maxTokens: options.maxTokens,
    temperature: options.temperature,
    seed: options.seed,
    weights: options.weights,
  });
  const points: WatchPoint[] = [...earlierPoints(options, conditions)];
  const failed = new Set<string>();
  const signal = options.signal ?? new AbortController().signal;
  for (;;) {
    const known = new Set([...points.map(({ folder }) => folder), ...failed]);
    const next = await nextCheckpoint(options.runs, known);
    if (next === null) {
      if (options.once || signal.aborted) break;
      await sleep(options.pollSeconds * 1000, undefined, { signal }).catch(() => undefined);
      continue;
    }
    options.onCheckpoint(next.run, next.checkpoint);
    try {
      points.push(await measureCheckpoint(next.run, next.checkpoint, options));
    } catch (error) {
      if (signal.aborted) break;
      failed.add(next.checkpoint.folder);
      options.onFailed(next.checkpoint, error);
      continue;
    }
    options.onMeasured(save(options, conditions, points));
  }
  return save(options, conditions, points);
}

/** The earliest step of any run first, so that runs can be compared at equal steps early. */
async function nextCheckpoint(runs: readonly NamedPath[], known: ReadonlySet<string>) {
  let next: { readonly run: string; readonly checkpoint: Checkpoint } | null = null;
  for (const { name, path } of runs) {
    for (const found of await findCheckpoints(path)) {
      const checkpoint = { ...found, folder: resolve(found.folder) };
      if (known.has(checkpoint.folder)) continue;
      if (next === null || checkpoint.step < next.checkpoint.step) next = { run: name, checkpoint };
    }
  }
  return next;
}

function save(options: WatchOptions, conditions: string, points: readonly WatchPoint[]): Watch {
  const runs = options.runs.map(({ name }) => name);
  const watch = watchSchema.parse({
    format: 'blockdraft-watch',
    formatVersion: 1,
    target: basename(options.target),
    conditions,
    points: [...points].sort((a, b) => runs.indexOf(a.run) - runs.indexOf(b.run) || a.step - b.step),
    logged: options.logs.flatMap(({ name, path }) => readTrainingLog(path, name)),
    overlays: overlayRuns(runs, points, options.seed),
  } satisfies Watch);
  if (options.out !== null) {
    mkdirSync(options.out, { recursive: true });
    writeFileSync(join(options.out, 'watch.json'), `${JSON.stringify(watch)}\n`);
    writeFileSync(join(options.out, 'watch.html'), watchHtml(watch));
  }
  return watch;
}

/** Points of an earlier watch over the same runs. */
function earlierPoints({ out, runs }: WatchOptions, conditions: string): readonly WatchPoint[] {
  const file = out === null ? null : join(out, 'watch.json');
  if (file === null || !existsSync(file)) return [];
  const parsed = watchSchema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!parsed.success || parsed.data.conditions !== conditions) {
    throw new AppError(
      'invalid_config',
      `Expected ${file} to have been measured with the same prompts and settings, got others; choose another --out`,
    );
  }
  const names = new Set(runs.map(({ name }) => name));
  return parsed.data.points.filter(({ run }) => names.has(run));
}
