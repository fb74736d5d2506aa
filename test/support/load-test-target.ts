import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import { CPU, type Device } from '../../src/onnx/device.ts';
import { readModelConfig } from '../../src/target/hf-config.ts';
import { type LoadedTarget, loadTarget } from '../../src/target/load-target.ts';
import { testRuntime } from './runtime.ts';

/** A folder for converted weights that goes away with its owner. It is made when its path is first asked for. */
export class TemporaryFolder implements AsyncDisposable {
  #path: string | null = null;

  get path(): string {
    this.#path ??= mkdtempSync(join(tmpdir(), 'blockdraft-test-'));
    return this.#path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#path !== null) await rm(this.#path, { recursive: true, force: true });
  }
}

export interface TestTargetOptions {
  readonly folder: string;
  readonly cacheDir: string;
  readonly format?: WeightFormat;
  readonly device?: Device;
  readonly taps?: readonly number[];
  readonly maxContext?: number;
  readonly maxSequences?: number;
  readonly maxCaches?: number;
  readonly maxRows?: number;
}

export function loadTestTarget(options: TestTargetOptions): Promise<LoadedTarget> {
  const { folder, cacheDir, format = 'f32', device = CPU, taps = [] } = options;
  return loadTarget({
    runtime: testRuntime(),
    device,
    folder,
    config: readModelConfig(folder),
    format,
    maxContext: options.maxContext ?? null,
    maxSequences: options.maxSequences ?? 4,
    maxRows: options.maxRows ?? 256,
    ...(options.maxCaches === undefined ? {} : { maxCaches: options.maxCaches }),
    taps,
    cacheDir,
  });
}
