/** The tensors of a checkpoint as a model knows them, with quantised pairs put together. */
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import { blocksPerRow, QUANT_BLOCK, type QuantBits, quantizedShape } from './block-quantization.ts';
import type { SafetensorsHeader } from './safetensors.ts';
import { formatShape } from './tensor-dtype.ts';
import type { TensorLocation } from './tensor-location.ts';

/** Value of the metadata key `format` in files whose quantised pairs are put together. */
export const QUANTIZED_FORMAT = 'blockdraft';
/** Metadata key: JSON of logical tensor name to shape, for each quantised tensor of the file. */
export const SHAPES_KEY = 'shapes';

/** Names of the two stored tensors of a quantised one. */
export function quantizedNames(name: string): { readonly values: string; readonly scale: string } {
  return { values: `${name}.q`, scale: `${name}.scale` };
}

export type CheckpointTensor = PlainTensor | QuantizedTensor;

/** Stored as it is. */
export interface PlainTensor extends TensorLocation {
  readonly type: 'plain';
  readonly name: string;
}

/** Stored as blocks of integers with one float32 scale each; reading gives float32. */
export interface QuantizedTensor {
  readonly type: 'quantized';
  readonly name: string;
  /** [out, in] */
  readonly shape: readonly number[];
  readonly bits: QuantBits;
  readonly block: typeof QUANT_BLOCK;
  /** U8 [out, blocks, bytes of a block] */
  readonly values: TensorLocation;
  /** F32 [out, blocks] */
  readonly scale: TensorLocation;
}

const shapesSchema = z.record(z.string(), z.tuple([z.int().positive(), z.int().positive()]));

/**
 * All tensors of the given files by name.
 *
 * @param headers of files that have no tensor in common
 * @throws AppError `invalid_checkpoint` when a quantised pair is not complete
 */
export function collectTensors(headers: readonly SafetensorsHeader[]): ReadonlyMap<string, CheckpointTensor> {
  const stored = new Map<string, PlainTensor>();
  for (const header of headers) {
    for (const [name, location] of header.tensors) {
      stored.set(name, { type: 'plain', name, ...location });
    }
  }
  const tensors = new Map<string, CheckpointTensor>(stored);
  for (const header of headers) {
    if (header.metadata['format'] !== QUANTIZED_FORMAT) continue;
    for (const [name, shape] of Object.entries(quantizedShapesOf(header))) {
      const names = quantizedNames(name);
      tensors.delete(names.values);
      tensors.delete(names.scale);
      tensors.set(name, joinPair(name, shape, stored.get(names.values), stored.get(names.scale), header.file));
    }
  }
  return tensors;
}

function quantizedShapesOf(header: SafetensorsHeader): Readonly<Record<string, readonly [number, number]>> {
  try {
    return shapesSchema.parse(JSON.parse(header.metadata[SHAPES_KEY] ?? '{}'));
  } catch (error) {
    throw new AppError(
      'invalid_checkpoint',
      `expected JSON of tensor name to [rows, columns] as metadata ${SHAPES_KEY} of ${header.file}, got something else; export the model again`,
      { cause: error },
    );
  }
}

function joinPair(
  name: string,
  shape: readonly [number, number],
  values: TensorLocation | undefined,
  scale: TensorLocation | undefined,
  file: string,
): QuantizedTensor {
  const [rows, columns] = shape;
  const bits = ([8, 4] as const).find((candidate) => hasShape(values, 'U8', quantizedShape(candidate, rows, columns)));
  if (
    values === undefined ||
    scale === undefined ||
    bits === undefined ||
    !hasShape(scale, 'F32', [rows, blocksPerRow(columns)])
  ) {
    const names = quantizedNames(name);
    throw new AppError(
      'invalid_checkpoint',
      `expected ${names.values} and ${names.scale} for ${formatShape(shape)} in blocks of ${QUANT_BLOCK}, as ${file} says, got ${describe(values)} and ${describe(scale)}; export the model again`,
    );
  }
  return { type: 'quantized', name, shape, bits, block: QUANT_BLOCK, values, scale };
}

function hasShape(tensor: TensorLocation | undefined, dtype: string, shape: readonly number[]): boolean {
  return tensor?.dtype === dtype && formatShape(tensor.shape) === formatShape(shape);
}

function describe(tensor: TensorLocation | undefined): string {
  return tensor === undefined ? 'nothing' : `${tensor.dtype} ${formatShape(tensor.shape)}`;
}
