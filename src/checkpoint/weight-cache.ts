/** The file of prepared weights: what it says about itself, and when it is believed. */
import { readSealedHeader } from './safetensors-seal.ts';
import type { TensorLocation } from './tensor-location.ts';
import type { WeightFormat } from './weight-plan.ts';

const CACHE_FORMAT = 'blockdraft-cache';
/** Raised whenever the same plan and source would give other bytes. */
const CACHE_VERSION = '1';

/** What decides the content of a cache file, together with the content of its source files. */
export interface CacheKey {
  readonly format: WeightFormat;
  /** Of `planDigest`. */
  readonly plan: string;
}

export interface CachedWeights {
  readonly tensors: ReadonlyMap<string, TensorLocation>;
  /** sha256 of each source file, in the order of first use, joined by commas. */
  readonly sources: string;
}

/** Metadata of a cache file. `sources` as in `CachedWeights`. */
export function cacheMetadata(key: CacheKey, sources: string): Readonly<Record<string, string>> {
  return { format: CACHE_FORMAT, version: CACHE_VERSION, weights: key.format, plan: key.plan, sources };
}

/** The weights of `file`, or null unless it is whole and made for `key`. */
export async function readCachedWeights(file: string, key: CacheKey): Promise<CachedWeights | null> {
  const header = await readSealedHeader(file).catch(() => null);
  if (header === null) return null;
  const sources = header.metadata['sources'] ?? '';
  const expected = Object.entries(cacheMetadata(key, sources));
  if (expected.some(([name, value]) => header.metadata[name] !== value)) return null;
  return { tensors: header.tensors, sources };
}
