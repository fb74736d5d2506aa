/** Checkpoints that were rolled back, noted beside them: a server that starts again does not try them once more. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { SwapRecord } from '../engine/engine.ts';
import type { Checkpoint } from '../validate/watch/checkpoints.ts';

/** One that was written again is another one. */
const keyOf = (name: unknown, stamp: unknown) => `${name} ${stamp}`;

export class RolledBack {
  readonly #file: string;
  readonly #known: Set<string>;

  /**
   * @param folder of the training run
   * @param drafter name under which its checkpoints serve
   * @throws whatever makes a file that is there unreadable
   */
  constructor(folder: string, drafter: string) {
    this.#file = join(folder, `rolled-back-${drafter}.jsonl`);
    const lines = existsSync(this.#file) ? readFileSync(this.#file, 'utf8').split('\n') : [];
    this.#known = new Set(lines.flatMap(keysOf));
  }

  has({ folder, stamp }: Checkpoint): boolean {
    return this.#known.has(keyOf(basename(folder), stamp));
  }

  /** @throws whatever keeps the file from being written; it is known until the end of the process all the same */
  add({ folder, stamp }: Checkpoint, { time, reason }: SwapRecord): void {
    const checkpoint = basename(folder);
    this.#known.add(keyOf(checkpoint, stamp));
    appendFileSync(this.#file, `${JSON.stringify({ checkpoint, stamp, time, reason })}\n`);
  }
}

function keysOf(line: string): string[] {
  try {
    const { checkpoint, stamp } = JSON.parse(line) as { readonly checkpoint: unknown; readonly stamp: unknown };
    return [keyOf(checkpoint, stamp)];
  } catch {
    // The end of the file, or a line that a killed server left half written.
    return [];
  }
}
