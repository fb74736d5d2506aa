/** Finds the safetensors files of a model folder and reads their headers. */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import { UNFINISHED_PULL_FILE } from '../core/unfinished-pull.ts';
import { systemErrorCode } from './file-io.ts';
import { readSafetensorsHeader, type SafetensorsHeader } from './safetensors.ts';

export const SINGLE_FILE = 'model.safetensors';
export const INDEX_FILE = 'model.safetensors.index.json';

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

/**
 * The headers of all weight files of `folder`, with symbolic links resolved.
 *
 * @throws AppError `invalid_checkpoint` when the folder has no safetensors weights, its index does not fit them, or its
 *   files may be of two revisions
 */
export async function readWeightFiles(folder: string): Promise<readonly SafetensorsHeader[]> {
  let entries: readonly string[];
  try {
    entries = await readdir(folder);
  } catch (error) {
    throw new AppError(
      'invalid_checkpoint',
      `expected a model folder with ${SINGLE_FILE}, got ${folder}, which cannot be listed (${systemErrorCode(error)}); check the path`,
      { cause: error },
    );
  }
  if (entries.includes(UNFINISHED_PULL_FILE)) {
    throw new AppError(
      'invalid_checkpoint',
      `expected files of one revision in ${folder}, got a pull that has not ended (${UNFINISHED_PULL_FILE}); pull it again`,
    );
  }
  if (entries.includes(INDEX_FILE)) return readShards(folder, entries.includes(SINGLE_FILE));
  if (entries.includes(SINGLE_FILE)) return [await readHeader(join(folder, SINGLE_FILE))];
  throw new AppError('invalid_checkpoint', `expected ${SINGLE_FILE} or ${INDEX_FILE} in ${folder}, got ${describe(entries)}`);
}

function describe(entries: readonly string[]): string {
  const pickle = entries.find((name) => /\.(bin|pt|pth|ckpt)$/.test(name));
  if (pickle !== undefined) return `the pickle file ${pickle}; convert it with save_pretrained(..., safe_serialization=True)`;
  const gguf = entries.find((name) => name.endsWith('.gguf'));
  if (gguf !== undefined) return `${gguf}; convert it to safetensors`;
  const shard = entries.find((name) => name.endsWith('.safetensors'));
  if (shard !== undefined) return `${shard} without an index; fetch the index too`;
  return entries.length === 0 ? 'an empty folder; fetch the weights' : 'no weights; fetch them';
}

async function readHeader(path: string): Promise<SafetensorsHeader> {
  try {
    return await readSafetensorsHeader(await realpath(path));
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError(
      'invalid_checkpoint',
      `expected weights in ${path}, got a file that cannot be read (${systemErrorCode(error)}); fetch it again`,
      { cause: error },
    );
  }
}

/** @param hasSingle there is a file of all weights, too */
async function readShards(folder: string, hasSingle: boolean): Promise<readonly SafetensorsHeader[]> {
  const indexPath = join(folder, INDEX_FILE);
  const weightMap = await readIndex(indexPath);
  if (hasSingle && !Object.values(weightMap).includes(SINGLE_FILE)) {
    throw new AppError(
      'invalid_checkpoint',
      `expected weights of one model in ${folder}, got ${SINGLE_FILE} and ${INDEX_FILE}, which does not name it; remove what is of another revision`,
    );
  }
  const namesOf = new Map<string, Set<string>>();
  for (const [name, file] of Object.entries(weightMap)) {
    if (!resolve(folder, file).startsWith(resolve(folder) + sep) || file.includes('\0') || file.includes('\\')) {
      throw new AppError(
        'invalid_checkpoint',
        `expected files inside the model folder in ${indexPath}, got ${JSON.stringify(file)} for ${name}; do not use this index`,
      );
    }
    const names = namesOf.get(file) ?? new Set();
    namesOf.set(file, names.add(name));
  }
  const headers: SafetensorsHeader[] = [];
  for (const [file, names] of namesOf) {
    const header = await readHeader(join(folder, file));
    for (const name of names) {
      if (!header.tensors.has(name)) {
        throw new AppError(
          'invalid_checkpoint',
          `expected tensor ${name} in ${file}, as ${indexPath} says, got a file without it; fetch index and shards of one revision`,
        );
      }
    }
    for (const name of header.tensors.keys()) {
      if (!names.has(name)) {
        throw new AppError(
          'invalid_checkpoint',
          `expected ${indexPath} to place tensor ${name} in ${file}, got ${weightMap[name] ?? 'nothing'}; fetch index and shards of one revision`,
        );
      }
    }
    headers.push(header);
  }
  return headers;
}

async function readIndex(path: string): Promise<Readonly<Record<string, string>>> {
  try {
    return indexSchema.parse(JSON.parse(await readFile(path, 'utf8'))).weight_map;
  } catch (error) {
    throw new AppError(
      'invalid_checkpoint',
      `expected a JSON object with weight_map (tensor name to file name) in ${path}, got something else; fetch it again`,
      { cause: error },
    );
  }
}
