/**
 * Brings the weights of a checkpoint into the form that a graph computes with. What the checkpoint has in
 * that form is used where it is; the rest is converted once into a cache file.
 */
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { cacheWriteError, defaultCacheDir } from './cache-dir.ts';
import type { Checkpoint } from './checkpoint.ts';
import { convertWeight } from './convert-weight.ts';
import { refuseNotFinite } from './refuse-not-finite.ts';
import { outputBytes, type ResolvedWeight, resolveWeight } from './resolve-weight.ts';
import { writeSafetensors } from './safetensors-writer.ts';
import { fileState, hashFile, recallDigests, rememberDigests, type SourceDigest, sameState } from './source-digest.ts';
import type { TensorLocation } from './tensor-location.ts';
import { type CacheKey, cacheMetadata, readCachedWeights } from './weight-cache.ts';
import { type ComputeFormat, type PlannedWeight, planDigest, type WeightFormat } from './weight-plan.ts';

/** Each prepared tensor by output name: `name`, or `name.q` and `name.scale`. */
export type PreparedWeights = ReadonlyMap<string, TensorLocation>;

export interface PrepareWeightsOptions {
  readonly checkpoint: Checkpoint;
  readonly plan: readonly PlannedWeight[];
  readonly format: WeightFormat;
  /** Type of vectors and scales; f32 unless given. */
  readonly compute?: ComputeFormat;
  /** The cache file itself. Without it a name in `outDir` is chosen, one for each model, plan and format. */
  readonly cacheFile?: string;
  /** Folder of cache files; `defaultCacheDir()` unless given. */
  readonly outDir?: string;
  /** Bytes hashed and written so far, and in all. Not called when there is nothing to do. */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Prepares all weights of `plan`.
 *
 * A cache file is used only when it is whole and made from the same content by the same plan; otherwise it is built
 * again. Several processes may do so at once.
 *
 * @throws AppError `invalid_checkpoint` when the checkpoint does not fit the plan, `invalid_config` when the cache
 *   cannot be written, `aborted`
 */
export async function prepareWeights(options: PrepareWeightsOptions): Promise<PreparedWeights> {
  const { checkpoint, plan, format } = options;
  const resolved = plan.map((weight) => resolveWeight(checkpoint, weight, format, options.compute ?? 'f32'));
  const prepared = new Map<string, TensorLocation>();
  const toConvert: ResolvedWeight[] = [];
  for (const weight of resolved) {
    if (weight.inPlace === null) toConvert.push(weight);
    else await refuseNotFinite(weight);
    weight.outputs.forEach((output, index) => {
      if (weight.inPlace !== null) prepared.set(output.name, weight.inPlace[index]!);
    });
  }
  if (toConvert.length > 0) {
    for (const [name, location] of await cachedOrBuilt(toConvert, options)) prepared.set(name, location);
  }
  const expected = resolved.reduce((sum, weight) => sum + weight.outputs.length, 0);
  if (prepared.size !== expected) {
    throw new AppError(
      'internal',
      `expected ${expected} outputs of the weight plan, got ${prepared.size}; give each its own name`,
    );
  }
  return prepared;
}

async function cachedOrBuilt(weights: readonly ResolvedWeight[], options: PrepareWeightsOptions): Promise<PreparedWeights> {
  const { format, signal } = options;
  const files = [...new Set(weights.flatMap((weight) => weight.files))];
  const key: CacheKey = { format, plan: planDigest(options.plan, format, options.compute ?? 'f32') };
  const cacheFile = options.cacheFile ?? join(options.outDir ?? defaultCacheDir(), cacheName(options, key, files));
  const memoFile = `${cacheFile}.sources.json`;
  await mkdir(dirname(cacheFile), { recursive: true }).catch((error: unknown) => {
    throw cacheWriteError(error, dirname(cacheFile));
  });

  const recalled = await recallDigests(files, memoFile);
  const cached = await readCachedWeights(cacheFile, key);
  const progress = new Progress(options.onProgress);
  progress.expect(recalled.reduce((sum, { state, sha256 }) => sum + (sha256 === null ? state.size : 0), 0));
  const buildBytes = weights.reduce((sum, weight) => sum + outputBytes(weight), 0);
  if (cached === null) progress.expect(buildBytes);

  const digests = await hashUnknown(recalled, progress, signal);
  if (recalled.some(({ sha256 }) => sha256 === null)) await rememberDigests(memoFile, digests);
  const sources = digests.map(({ sha256 }) => sha256).join(',');
  if (cached?.sources === sources) return cached.tensors;

  if (cached !== null) progress.expect(buildBytes);
  try {
    return await writeSafetensors(
      cacheFile,
      { metadata: cacheMetadata(key, sources), tensors: weights.flatMap((weight) => weight.outputs), sealed: true },
      async (sink) => {
        for (const weight of weights) {
          await convertWeight(
            weight,
            async (name, bytes) => {
              await sink(name, bytes);
              progress.add(bytes.byteLength);
            },
            signal,
          );
        }
        await checkUnchanged(digests);
      },
    );
  } catch (error) {
    throw cacheWriteError(error, dirname(cacheFile));
  }
}

/** Content decides whether a cache is used; the paths only keep models with equal names apart. */
function cacheName({ checkpoint, format }: PrepareWeightsOptions, key: CacheKey, files: readonly string[]): string {
  const place = createHash('sha256')
    .update(JSON.stringify([key.plan, files]))
    .digest('hex');
  const model = basename(checkpoint.folder).replaceAll(/[^\w.-]/g, '_');
  return `${model}-${format}-${place.slice(0, 16)}.safetensors`;
}

async function hashUnknown(
  digests: readonly SourceDigest[],
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<readonly SourceDigest[]> {
  const known: SourceDigest[] = [];
  for (const { state, sha256 } of digests) {
    known.push({ state, sha256: sha256 ?? (await hashFile(state.path, (count) => progress.add(count), signal)) });
  }
  return known;
}

/** A file that changed between its digest and its conversion would give a cache that claims another content. */
async function checkUnchanged(digests: readonly SourceDigest[]): Promise<void> {
  for (const { state } of digests) {
    if (!sameState(state, await fileState(state.path))) {
      throw new AppError(
        'invalid_checkpoint',
        `expected ${state.path} to stay as it is while its weights are prepared, got another size or time; start again when it is complete`,
      );
    }
  }
}

class Progress {
  readonly #report: ((doneBytes: number, totalBytes: number) => void) | undefined;
  #done = 0;
  #total = 0;

  constructor(report: ((doneBytes: number, totalBytes: number) => void) | undefined) {
    this.#report = report;
  }

  expect(bytes: number): void {
    this.#total += bytes;
  }

  add(bytes: number): void {
    this.#done += bytes;
    this.#report?.(this.#done, this.#total);
  }
}
