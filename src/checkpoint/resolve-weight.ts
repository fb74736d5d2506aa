/** Joins a planned weight with the checkpoint: where its values come from and what they turn into. */
import { AppError } from '../core/app-error.ts';
import { blocksPerRow, type QuantBits, quantizedShape } from './block-quantization.ts';
import type { Checkpoint } from './checkpoint.ts';
import { type CheckpointTensor, quantizedNames } from './checkpoint-tensor.ts';
import { concatRows, type RowSource, selectRows, tensorRows } from './row-source.ts';
import { dtypeAlignment, elementCount, type FloatDtype, formatShape, isFloatDtype, tensorBytes } from './tensor-dtype.ts';
import type { TensorLocation, TensorSpec } from './tensor-location.ts';
import { type ComputeFormat, type PlannedWeight, sourceNames, type WeightFormat } from './weight-plan.ts';

export type WeightEncoding =
  | { readonly type: 'plain'; readonly dtype: FloatDtype }
  | { readonly type: 'quantized'; readonly bits: QuantBits; readonly scale: FloatDtype };

const DTYPES = { f32: 'F32', f16: 'F16', bf16: 'BF16' } as const;

export interface ResolvedWeight {
  readonly name: string;
  readonly source: RowSource;
  readonly encoding: WeightEncoding;
  /** One tensor, or values and scale. */
  readonly outputs: readonly TensorSpec[];
  /** Where the outputs already are, in their order, when the checkpoint has them just so; else null. */
  readonly inPlace: readonly TensorLocation[] | null;
  /** Files that the values come from. */
  readonly files: readonly string[];
}

/**
 * @param compute type of vectors and scales
 * @throws AppError `invalid_checkpoint` when a tensor is absent, has another shape than planned, or is not of floats
 */
export function resolveWeight(
  checkpoint: Checkpoint,
  weight: PlannedWeight,
  format: WeightFormat,
  compute: ComputeFormat,
): ResolvedWeight {
  const tensors = sourceNames(weight).map((name) => checkpoint.tensor(name));
  for (const tensor of tensors) {
    if (tensor.type === 'plain' && !isFloatDtype(tensor.dtype)) {
      throw new AppError(
        'invalid_checkpoint',
        `expected F32, F16 or BF16 values in tensor ${tensor.name}, got ${tensor.dtype}; convert the checkpoint to one of them`,
      );
    }
  }
  checkShape(weight, tensors, checkpoint.folder);
  const joined = tensors.length === 1 ? tensorRows(tensors[0]!) : concatRows(tensors.map(tensorRows));
  const source = weight.rows === undefined ? joined : selectRows(joined, weight.rows, weight.name);
  const encoding = chooseEncoding(weight, tensors, format, compute);
  const outputs = outputsOf(weight, encoding);
  const whole = tensors.length === 1 && weight.rows === undefined;
  return {
    name: weight.name,
    source,
    encoding,
    outputs,
    inPlace: whole ? locateInPlace(tensors[0]!, encoding) : null,
    files: tensors.flatMap((tensor) => (tensor.type === 'plain' ? [tensor.file] : [tensor.values.file, tensor.scale.file])),
  };
}

function checkShape(weight: PlannedWeight, tensors: readonly CheckpointTensor[], folder: string): void {
  const inner = tensors[0]!.shape.slice(1);
  const odd = tensors.find((tensor) => formatShape(tensor.shape.slice(1)) !== formatShape(inner));
  if (odd !== undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `expected rows of ${formatShape(inner)} to join into ${weight.name}, got ${formatShape(odd.shape.slice(1))} in tensor ${odd.name} of ${folder}`,
    );
  }
  const stored =
    tensors.length === 1 ? tensors[0]!.shape : [tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 1), 0), ...inner];
  const result = weight.rows === undefined ? stored : [weight.rows.length, ...stored.slice(1)];
  if (formatShape(result) !== formatShape(weight.shape)) {
    throw new AppError(
      'invalid_checkpoint',
      `expected shape ${formatShape(weight.shape)} for ${weight.name}, got ${formatShape(result)} from ${sourceNames(weight).join(' + ')} in ${folder}; check that config.json belongs to these weights`,
    );
  }
  if (weight.kind !== 'vector' && weight.kind !== 'exact' && weight.shape.length !== 2) {
    throw new AppError(
      'internal',
      `expected two dimensions for the ${weight.kind} ${weight.name}, got ${formatShape(weight.shape)}`,
    );
  }
}

function chooseEncoding(
  weight: PlannedWeight,
  tensors: readonly CheckpointTensor[],
  format: WeightFormat,
  compute: ComputeFormat,
): WeightEncoding {
  switch (weight.kind) {
    case 'vector':
      return { type: 'plain', dtype: DTYPES[compute] };
    case 'exact':
      return { type: 'plain', dtype: 'F32' };
    case 'embedding': {
      const dtypes = new Set(tensors.map((tensor) => (tensor.type === 'plain' ? tensor.dtype : 'F32')));
      const [dtype] = dtypes;
      return { type: 'plain', dtype: dtypes.size === 1 && dtype !== undefined && isFloatDtype(dtype) ? dtype : 'F32' };
    }
    case 'linear':
    case 'head':
      if (format !== 'int8' && format !== 'int4') return { type: 'plain', dtype: DTYPES[format] };
      return { type: 'quantized', bits: format === 'int4' && weight.kind === 'linear' ? 4 : 8, scale: DTYPES[compute] };
  }
}

function outputsOf(weight: PlannedWeight, encoding: WeightEncoding): readonly TensorSpec[] {
  if (encoding.type === 'plain') return [{ name: weight.name, dtype: encoding.dtype, shape: weight.shape }];
  const [rows, columns] = weight.shape as [number, number];
  const names = quantizedNames(weight.name);
  return [
    { name: names.values, dtype: 'U8', shape: quantizedShape(encoding.bits, rows, columns) },
    { name: names.scale, dtype: encoding.scale, shape: [rows, blocksPerRow(columns)] },
  ];
}

function locateInPlace(tensor: CheckpointTensor, encoding: WeightEncoding): readonly TensorLocation[] | null {
  if (tensor.type === 'quantized') {
    if (encoding.type !== 'quantized' || encoding.bits !== tensor.bits || encoding.scale !== tensor.scale.dtype) return null;
    if (!isAligned(tensor.scale)) return null;
    return [locationOf(tensor.values), locationOf(tensor.scale)];
  }
  if (encoding.type !== 'plain' || encoding.dtype !== tensor.dtype || !isAligned(tensor)) return null;
  return [locationOf(tensor)];
}

function isAligned(tensor: TensorLocation): boolean {
  return tensor.offset % dtypeAlignment(tensor.dtype) === 0;
}

function locationOf({ file, offset, byteLength, dtype, shape }: TensorLocation): TensorLocation {
  return { file, offset, byteLength, dtype, shape };
}

/** Bytes of all outputs. */
export function outputBytes(weight: ResolvedWeight): number {
  return weight.outputs.reduce((sum, { dtype, shape }) => sum + (tensorBytes(dtype, elementCount(shape)) ?? 0), 0);
}
