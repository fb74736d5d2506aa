/** Opens a drafter folder in z-lab's DFlash layout. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { openCheckpoint } from '../../checkpoint/checkpoint.ts';
import { prepareWeights } from '../../checkpoint/prepare-weights.ts';
import { readJson } from '../../checkpoint/read-json.ts';
import type { WeightFormat } from '../../checkpoint/weight-plan.ts';
import { AppError } from '../../core/app-error.ts';
import type { LinearSpec } from '../../graph/linear.ts';
import { ropeTables } from '../../graph/rope.ts';
import { CachePool } from '../../model/kv-cache.ts';
import type { Device } from '../../onnx/device.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import { OwnedTensor } from '../../onnx/tensor.ts';
import { WeightTensors } from '../../onnx/weight-tensors.ts';
import type { BorrowedTarget } from '../borrowed-target.ts';
import type { DflashConfig } from './dflash-config.ts';
import { DflashDrafter } from './dflash-drafter.ts';
import { DRAFT_ROPE_COS, DRAFT_ROPE_SIN } from './dflash-graph.ts';
import { planDflashWeights, refuseUnclaimed } from './dflash-weights.ts';

/** A list of target ids beside the weights: the drafter then chooses among them only, and its head is that much cheaper. */
export const KEPT_TOKENS_FILE = 'draft_tokens.json';
const DRAFT_HEAD_WEIGHT = 'draft_head.weight';

export interface LoadDflashOptions {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  readonly folder: string;
  /** What {@link readDflashConfig} found there. */
  readonly config: DflashConfig;
  readonly format: WeightFormat;
  readonly target: BorrowedTarget;
  /** Folder for converted weights; null: the user's cache folder. */
  readonly cacheDir: string | null;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

/** @throws AppError `incompatible_drafter` naming both numbers, `invalid_checkpoint`, or what ONNX Runtime reports */
export async function loadDflash(options: LoadDflashOptions): Promise<DflashDrafter> {
  const { runtime, device, folder, config, format, target } = options;
  refuseMismatch(config, target, folder);
  const checkpoint = await openCheckpoint(folder);
  const plan = planDflashWeights(config);
  refuseUnclaimed(checkpoint, plan, folder);
  const common = {
    format,
    ...(options.cacheDir === null ? {} : { outDir: options.cacheDir }),
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
  const locations = new Map(await prepareWeights({ checkpoint, plan, ...common }));

  const keptTokens = readKeptTokens(folder, target.vocabSize);
  let head: LinearSpec = target.head;
  if (keptTokens !== null) {
    head = { weight: DRAFT_HEAD_WEIGHT, inFeatures: config.hidden, outFeatures: keptTokens.length, format: target.head.format };
    const rows = {
      name: DRAFT_HEAD_WEIGHT,
      source: target.head.weight,
      kind: 'head' as const,
      shape: [keptTokens.length, config.hidden],
      rows: keptTokens,
    };
    const prepared = await prepareWeights({ checkpoint: target.checkpoint, plan: [rows], ...common });
    for (const [name, location] of prepared) locations.set(name, location);
  }

  const weights = new WeightTensors(runtime, locations);
  const positions = target.maxContext + config.blockSize + CachePool.SPARE_POSITIONS;
  const tables = ropeTables(config.rope, positions);
  const tableShape = [positions, config.headDim / 2];
  weights.add(DRAFT_ROPE_COS, OwnedTensor.over(runtime, 'f32', tableShape, tables.cos));
  weights.add(DRAFT_ROPE_SIN, OwnedTensor.over(runtime, 'f32', tableShape, tables.sin));
  return DflashDrafter.create({
    runtime,
    device,
    config,
    target,
    weights,
    graph: { format, embedding: target.embedding, head, positions },
    keptTokens,
  });
}

/** Facts that must agree, or every proposal would be noise while the text stays right. */
function refuseMismatch(config: DflashConfig, target: BorrowedTarget, folder: string): void {
  const facts = [
    ['hidden_size', config.hidden, target.hiddenSize],
    ['vocab_size', config.vocab, target.vocabSize],
    ['num_target_layers', config.targetLayers, target.layers],
  ] as const;
  for (const [name, ofDrafter, ofTarget] of facts) {
    if (ofDrafter === ofTarget) continue;
    throw new AppError(
      'incompatible_drafter',
      `${folder} was trained for another target: its ${name} is ${ofDrafter}, the target's is ${ofTarget}`,
      { details: { name, drafter: ofDrafter, target: ofTarget } },
    );
  }
}

function readKeptTokens(folder: string, vocabSize: number): Int32Array | null {
  const file = join(folder, KEPT_TOKENS_FILE);
  if (!existsSync(file)) return null;
  const refuse = (message: string) => new AppError('incompatible_drafter', `${file}: ${message}`);
  const tokens = readJson(file, z.array(z.number().int().nonnegative()).min(1));
  const outside = tokens.find((token) => token >= vocabSize);
  if (outside !== undefined) throw refuse(`expected token ids below the target's vocabulary of ${vocabSize}, got ${outside}`);
  if (new Set(tokens).size !== tokens.length) throw refuse('expected each token id once, found one twice');
  return Int32Array.from(tokens);
}
