/** Writes the weights of a checkpoint, converted, as a model folder of its own. */
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import type { Checkpoint } from './checkpoint.ts';
import { type PlainTensor, QUANTIZED_FORMAT, SHAPES_KEY } from './checkpoint-tensor.ts';
import { convertWeight } from './convert-weight.ts';
import { copyTensor } from './copy-tensor.ts';
import { systemErrorCode } from './file-io.ts';
import { readJson } from './read-json.ts';
import { outputBytes, type ResolvedWeight, resolveWeight } from './resolve-weight.ts';
import { writeSafetensors } from './safetensors-writer.ts';
import { INDEX_FILE } from './weight-files.ts';
import type { PlannedWeight, WeightFormat } from './weight-plan.ts';

const EXPORT_VERSION = '1';
const DEFAULT_SHARD_BYTES = 90_000_000;
/** Room for one tensor's entry in a header, its name apart. */
const HEADER_ENTRY_BYTES = 256;

const CONFIG_FILE = 'config.json';
const COMPANION_FILES = new Set([
  CONFIG_FILE,
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'tokenizer.model',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'chat_template.jinja',
  'chat_template.json',
  'draft_tokens.json',
]);
const COMPANION_PATTERN = /^(licen[cs]e|notice|readme)(\.(md|txt))?$/i;

export interface ExportWeightsOptions {
  readonly checkpoint: Checkpoint;
  /** Each weight keeps the name that it has in the checkpoint. */
  readonly plan: readonly PlannedWeight[];
  readonly format: WeightFormat;
  /** Tensors that are copied as they are, such as tables of token ids. */
  readonly verbatim?: readonly string[];
  /** Keys that are set in the copy of config.json. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Made if absent; must not hold weights yet. */
  readonly outDir: string;
  /** Largest file; a single tensor that is larger gets a file of its own. */
  readonly shardBytes?: number;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

export interface ExportedWeights {
  /** Names of all files written, in `outDir`. */
  readonly files: readonly string[];
  readonly weightBytes: number;
}

/**
 * Exports the weights of `plan` to `outDir`, with the configuration, tokenizer and licence files beside the
 * checkpoint. `openCheckpoint` on the result shows the same names; quantised ones read as float32.
 *
 * @throws AppError `invalid_checkpoint` when the plan does not fit, `invalid_config` when the folder cannot be used, `aborted`
 */
export async function exportWeights(options: ExportWeightsOptions): Promise<ExportedWeights> {
  const { checkpoint, plan, format, outDir, verbatim = [], shardBytes = DEFAULT_SHARD_BYTES, onProgress, signal } = options;
  for (const weight of plan) {
    if (weight.source !== weight.name || weight.rows !== undefined) {
      throw new AppError(
        'internal',
        `expected ${weight.name} to be one whole tensor of that name, got ${String(weight.source)} or chosen rows`,
      );
    }
  }
  const weights = plan.map((weight) => resolveWeight(checkpoint, weight, format, 'f32'));
  const copied = verbatim.map((name) => storedTensor(checkpoint, name));
  const shards = groupByBytes(weights, shardBytes);
  const shardCount = shards.length + (copied.length > 0 ? 1 : 0);
  const totalBytes =
    weights.reduce((sum, weight) => sum + outputBytes(weight), 0) + copied.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const files: string[] = [];
  const weightMap: Record<string, string> = {};
  let doneBytes = 0;
  try {
    await makeEmptyFolder(outDir);
    for (const [index, shard] of shards.entries()) {
      const file = shardName(index, shardCount);
      await writeSafetensors(
        join(outDir, file),
        { metadata: shardMetadata(shard, format), tensors: shard.flatMap((weight) => weight.outputs) },
        async (sink) => {
          for (const weight of shard) {
            await convertWeight(
              weight,
              async (name, bytes) => {
                await sink(name, bytes);
                doneBytes += bytes.byteLength;
                onProgress?.(doneBytes, totalBytes);
              },
              signal,
            );
          }
        },
      );
      for (const output of shard.flatMap((weight) => weight.outputs)) weightMap[output.name] = file;
      files.push(file);
    }
    if (copied.length > 0) {
      const file = shardName(shardCount - 1, shardCount);
      await writeSafetensors(join(outDir, file), { metadata: shardMetadata([], format), tensors: copied }, async (sink) => {
        for (const tensor of copied) await copyTensor(tensor.name, tensor, sink, signal);
      });
      for (const { name } of copied) weightMap[name] = file;
      files.push(file);
      onProgress?.(totalBytes, totalBytes);
    }
    files.push(...(await copyCompanions(checkpoint.folder, outDir)));
    await setKeys(join(outDir, CONFIG_FILE), options.config ?? {});
    // The index comes last: without it the folder is refused, so a broken export is never loaded.
    const index = { metadata: { total_size: totalBytes }, weight_map: weightMap };
    await writeFile(join(outDir, INDEX_FILE), `${JSON.stringify(index, null, 1)}\n`);
    files.push(INDEX_FILE);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError(
      'invalid_config',
      `expected to write the model to ${outDir}, got ${systemErrorCode(error)}; choose another folder`,
      {
        cause: error,
      },
    );
  }
  return { files, weightBytes: totalBytes };
}

function storedTensor(checkpoint: Checkpoint, name: string): PlainTensor {
  const tensor = checkpoint.tensor(name);
  if (tensor.type === 'plain') return tensor;
  throw new AppError('internal', `expected a tensor that is stored as it is to copy, got the quantised ${name}`);
}

function shardName(index: number, count: number): string {
  return `model-${numbered(index + 1)}-of-${numbered(count)}.safetensors`;
}

function numbered(value: number): string {
  return String(value).padStart(5, '0');
}

function groupByBytes(weights: readonly ResolvedWeight[], limit: number): readonly (readonly ResolvedWeight[])[] {
  const shards: ResolvedWeight[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const weight of weights) {
    const bytes = outputBytes(weight) + weight.outputs.length * (HEADER_ENTRY_BYTES + 2 * weight.name.length);
    if (used + bytes > limit) {
      shards.push([]);
      used = 0;
    }
    shards.at(-1)!.push(weight);
    used += bytes;
  }
  return shards;
}

function shardMetadata(shard: readonly ResolvedWeight[], format: WeightFormat): Readonly<Record<string, string>> {
  const shapes = shard
    .filter((weight) => weight.encoding.type === 'quantized')
    .map((weight) => [weight.name, [weight.source.rows, weight.source.columns]]);
  return {
    format: QUANTIZED_FORMAT,
    weights: format,
    version: EXPORT_VERSION,
    [SHAPES_KEY]: JSON.stringify(Object.fromEntries(shapes)),
  };
}

async function makeEmptyFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const weights = (await readdir(folder)).find((name) => name.endsWith('.safetensors') || name === INDEX_FILE);
  if (weights !== undefined) {
    throw new AppError(
      'invalid_config',
      `expected a folder without weights at ${folder}, got one with ${weights}; choose another or empty it`,
    );
  }
}

async function copyCompanions(from: string, to: string): Promise<readonly string[]> {
  const names = (await readdir(from)).filter((name) => COMPANION_FILES.has(name) || COMPANION_PATTERN.test(name));
  for (const name of names) await copyFile(join(from, name), join(to, name));
  return names;
}

async function setKeys(file: string, keys: Readonly<Record<string, unknown>>): Promise<void> {
  if (Object.keys(keys).length === 0) return;
  const config = readJson(file, z.looseObject({}));
  await writeFile(file, `${JSON.stringify({ ...config, ...keys }, null, 2)}\n`);
}
