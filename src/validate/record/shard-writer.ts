/** Shards of a recording and their manifest. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bytesOf } from '../../checkpoint/file-io.ts';
import { writeSafetensors } from '../../checkpoint/safetensors-writer.ts';
import type { TensorSpec } from '../../checkpoint/tensor-location.ts';
import { AppError } from '../../core/app-error.ts';
import { replaceFile } from '../replace-file.ts';
import { DTYPES } from './encode-rows.ts';
import { CONVENTIONS, type Conditions, type Manifest, manifestSchema } from './manifest-schema.ts';
import type { RecordedTurn } from './recorded-turn.ts';

export const MANIFEST_FILE = 'manifest.json';

/** A sequence with its rows. */
export interface FinishedSequence extends Pick<RecordedTurn, 'tokens' | 'promptLength' | 'chunks'> {
  readonly id: string;
  /** Digest of the messages of its conversation. */
  readonly prompt: string;
}

/** Writes while the caller goes on; a shard is in the manifest when it is on the disk. */
export class ShardWriter {
  readonly #folder: string;
  readonly #tensors: readonly string[];
  readonly #shardRows: number;
  #manifest: Manifest;
  #pending: FinishedSequence[] = [];
  #pendingRows = 0;
  #writing: Promise<void> = Promise.resolve();
  #written: number;

  private constructor(folder: string, tensors: readonly string[], shardRows: number, manifest: Manifest) {
    this.#folder = folder;
    this.#tensors = tensors;
    this.#shardRows = shardRows;
    this.#manifest = manifest;
    this.#written = manifest.shards.length;
  }

  /**
   * @param tensors names of the tensors of floats
   * @param shardRows rows after which a shard is written
   * @param resume go on with the shards that are there
   * @throws AppError `invalid_config` when there is a recording made under other conditions, or one and `resume` is not set
   */
  static open(
    folder: string,
    tensors: readonly string[],
    shardRows: number,
    conditions: Conditions,
    resume: boolean,
  ): ShardWriter {
    mkdirSync(folder, { recursive: true });
    const earlier = readManifest(folder);
    if (earlier !== null && !resume) {
      throw new AppError(
        'invalid_config',
        `Expected an empty folder, got a recording in ${folder}; go on with it by --resume, or choose another --out`,
      );
    }
    if (earlier !== null && JSON.stringify(earlier.conditions) !== JSON.stringify(conditions)) {
      throw new AppError(
        'invalid_config',
        `Expected the recording in ${folder} to have been made with the same target and settings, got others; choose another --out`,
      );
    }
    const manifest: Manifest = earlier ?? {
      format: 'blockdraft-recording',
      formatVersion: 1,
      conventions: { ...CONVENTIONS },
      conditions,
      complete: false,
      skipped: [],
      shards: [],
    };
    return new ShardWriter(folder, tensors, shardRows, manifest);
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /** Digests of the prompts of the sequences that are on the disk, by the sequences' ids. */
  recorded(): ReadonlyMap<string, string> {
    return new Map(this.#manifest.shards.flatMap(({ ids, prompts }) => ids.map((id, i) => [id, prompts[i] ?? ''] as const)));
  }

  /** Notes a sequence that cannot be recorded. */
  skip(id: string): void {
    this.#manifest = { ...this.#manifest, skipped: [...new Set([...this.#manifest.skipped, id])] };
  }

  /** @param sequences that belong together: a recording has all of them or none */
  add(sequences: readonly FinishedSequence[]): void {
    this.#pending.push(...sequences);
    this.#pendingRows += sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
    if (this.#pendingRows >= this.#shardRows) this.#write();
  }

  /** Waits for a shard that is being written; call it now and then, so that no more than one is. */
  async settle(): Promise<void> {
    await this.#writing;
  }

  /** @throws system errors */
  async finish(complete: boolean): Promise<void> {
    if (this.#pending.length > 0) this.#write();
    await this.#writing;
    this.#manifest = { ...this.#manifest, complete };
    this.#save();
  }

  #write(): void {
    const sequences = this.#pending;
    this.#pending = [];
    this.#pendingRows = 0;
    const file = `shard-${String(this.#written++).padStart(5, '0')}.safetensors`;
    this.#writing = this.#writing.then(() => this.#writeShard(file, sequences));
    // Whoever waits for it is told; until then nobody may be listening.
    this.#writing.catch(() => undefined);
  }

  async #writeShard(file: string, sequences: readonly FinishedSequence[]): Promise<void> {
    const rows = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const { hiddenSize, precision } = this.#manifest.conditions;
    const ids = new Int32Array(sequences.flatMap(({ tokens }) => tokens));
    const offsets = new BigInt64Array(sequences.length + 1);
    for (const [i, { tokens }] of sequences.entries()) offsets[i + 1] = offsets[i]! + BigInt(tokens.length);
    const prompts = new Int32Array(sequences.map(({ promptLength }) => promptLength));
    const specs: TensorSpec[] = [
      { name: 'input_ids', dtype: 'I32', shape: [rows] },
      { name: 'sequence_offsets', dtype: 'I64', shape: [sequences.length + 1] },
      { name: 'prompt_lengths', dtype: 'I32', shape: [sequences.length] },
      ...this.#tensors.map((name) => ({ name, dtype: DTYPES[precision], shape: [rows, hiddenSize] })),
    ];
    await writeSafetensors(join(this.#folder, file), { metadata: { format: 'pt' }, tensors: specs }, async (sink) => {
      await sink('input_ids', bytesOf(ids));
      await sink('sequence_offsets', bytesOf(offsets));
      await sink('prompt_lengths', bytesOf(prompts));
      for (const name of this.#tensors) {
        for (const { chunks } of sequences) await sink(name, Buffer.concat(chunks.get(name) ?? []));
      }
    });
    const shard = {
      ...{ file, sequences: sequences.length, rows },
      ids: sequences.map(({ id }) => id),
      prompts: sequences.map(({ prompt }) => prompt),
    };
    this.#manifest = { ...this.#manifest, shards: [...this.#manifest.shards, shard] };
    this.#save();
  }

  #save(): void {
    replaceFile(join(this.#folder, MANIFEST_FILE), `${JSON.stringify(this.#manifest, null, 2)}\n`);
  }
}

/**
 * @returns null when the folder has none
 * @throws AppError `invalid_config` when it cannot be used
 */
export function readManifest(folder: string): Manifest | null {
  let text: string;
  try {
    text = readFileSync(join(folder, MANIFEST_FILE), 'utf8');
  } catch {
    return null;
  }
  try {
    return manifestSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new AppError(
      'invalid_config',
      `Expected the manifest of a recording in ${folder}, got something else; choose another --out`,
      { cause },
    );
  }
}
