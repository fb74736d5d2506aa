/** The element types of safetensors files, with their sizes. */

const BITS = {
  F64: 64,
  F32: 32,
  F16: 16,
  BF16: 16,
  F8_E4M3: 8,
  F8_E5M2: 8,
  F8_E8M0: 8,
  F6_E2M3: 6,
  F6_E3M2: 6,
  F4: 4,
  C64: 64,
  I64: 64,
  I32: 32,
  I16: 16,
  I8: 8,
  U64: 64,
  U32: 32,
  U16: 16,
  U8: 8,
  BOOL: 8,
} as const;

export type TensorDtype = keyof typeof BITS;

/** The float types that are converted to and from float32. */
export type FloatDtype = 'F32' | 'F16' | 'BF16';

export function isTensorDtype(text: unknown): text is TensorDtype {
  return typeof text === 'string' && Object.hasOwn(BITS, text);
}

export function isFloatDtype(dtype: TensorDtype): dtype is FloatDtype {
  return dtype === 'F32' || dtype === 'F16' || dtype === 'BF16';
}

/** Bytes that `elements` values take, or null when they do not fill whole bytes or are too many to count. */
export function tensorBytes(dtype: TensorDtype, elements: number): number | null {
  const bytes = (elements * BITS[dtype]) / 8;
  return Number.isSafeInteger(bytes) && Number.isSafeInteger(elements) ? bytes : null;
}

/** Product of the dimensions; 1 for a scalar. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** The alignment in bytes that reading the values in place wants. */
export function dtypeAlignment(dtype: TensorDtype): number {
  return Math.max(1, BITS[dtype] >> 3);
}

/** `[2, 3]`, as messages write shapes. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`;
}
