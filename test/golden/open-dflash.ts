import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { DflashLayout } from '../../src/drafter/dflash/declared-format.ts';
import { readDflashConfig } from '../../src/drafter/dflash/dflash-config.ts';
import type { DflashDrafter } from '../../src/drafter/dflash/dflash-drafter.ts';
import { loadDflash } from '../../src/drafter/dflash/load-dflash.ts';
import { borrowTarget } from '../../src/engine/borrow-target.ts';
import { CPU, type Device } from '../../src/onnx/device.ts';
import type { OnnxTarget } from '../../src/target/onnx-target.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { testRuntime } from '../support/runtime.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

export interface GoldenStep {
  /** Position of the anchor. */
  readonly start: number;
  readonly anchor: TokenId;
  /** Feature rows that were handed over. */
  readonly context_rows: number;
  readonly draft: readonly TokenId[];
  /** Draft tokens that the target agreed with, also beyond a stop token or the length limit. */
  readonly accepted: number;
  /** Tokens kept after a stop token or the length limit. */
  readonly produced: number;
}

export interface GoldenRun {
  readonly prompt: readonly TokenId[];
  readonly max_new_tokens: number;
  readonly stop_token_ids?: readonly TokenId[];
  readonly output: readonly TokenId[];
  readonly acceptance_lengths: readonly number[];
  readonly steps: readonly GoldenStep[];
}

export function readGoldenRuns(name: string): readonly GoldenRun[] {
  return JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8')).runs;
}

/** How a pair computes. */
export interface Computing {
  readonly format: WeightFormat;
  readonly device: Device;
  /** Default: one for each sequence. */
  readonly maxCaches?: number;
}

export const IN_F32: Computing = { format: 'f32', device: CPU };
/** For comparison: a CPU computes f16 by way of f32, and only like this. */
export const IN_F16: Computing = { format: 'f16', device: { kind: 'cpu', unpacked: true } };

/** A drafter and the target that it was made for, both in f32 unless told otherwise. */
export class DflashPair implements AsyncDisposable {
  readonly target: OnnxTarget;
  readonly drafter: DflashDrafter;
  readonly layout: DflashLayout;
  readonly #temporary: TemporaryFolder;

  private constructor(target: OnnxTarget, drafter: DflashDrafter, layout: DflashLayout, temporary: TemporaryFolder) {
    this.target = target;
    this.layout = layout;
    this.drafter = drafter;
    this.#temporary = temporary;
  }

  /** @param temporary for converted weights; taken over */
  static async open(
    drafterFolder: string,
    targetFolder: string,
    temporary = new TemporaryFolder(),
    computing: Computing = IN_F32,
  ): Promise<DflashPair> {
    const config = readDflashConfig(drafterFolder);
    const loaded = await loadTestTarget({ folder: targetFolder, cacheDir: temporary.path, taps: config.taps, ...computing });
    const drafter = await loadDflash({
      runtime: testRuntime(),
      folder: drafterFolder,
      config,
      ...computing,
      cacheDir: temporary.path,
      target: borrowTarget(loaded),
    });
    return new DflashPair(loaded.target, drafter, config.layout, temporary);
  }

  static openFixture(name: string, temporary?: TemporaryFolder, computing?: Computing): Promise<DflashPair> {
    return DflashPair.open(join(FIXTURES, name), join(FIXTURES, 'dflash-target'), temporary, computing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drafter[Symbol.asyncDispose]();
    await this.target[Symbol.asyncDispose]();
    await this.#temporary[Symbol.asyncDispose]();
  }
}
