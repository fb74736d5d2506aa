/** Element types of tensors: ONNX's number, width in bytes, and how JavaScript sees them. */

const ELEMENT_TYPES = {
  f32: { onnx: 1, bytes: 4, view: Float32Array },
  u8: { onnx: 2, bytes: 1, view: Uint8Array },
  i8: { onnx: 3, bytes: 1, view: Int8Array },
  i32: { onnx: 6, bytes: 4, view: Int32Array },
  i64: { onnx: 7, bytes: 8, view: BigInt64Array },
  bool: { onnx: 9, bytes: 1, view: Uint8Array },
  /** Raw bits: JavaScript on Node 20 has no 16-bit floats. */
  f16: { onnx: 10, bytes: 2, view: Uint16Array },
  bf16: { onnx: 16, bytes: 2, view: Uint16Array },
} as const;

export type ElementType = keyof typeof ELEMENT_TYPES;
export type ElementView<T extends ElementType> = InstanceType<(typeof ELEMENT_TYPES)[T]['view']>;

/** The value of TensorProto.DataType and ONNXTensorElementDataType, which agree. */
export function onnxElementType(type: ElementType): number {
  return ELEMENT_TYPES[type].onnx;
}

export function elementBytes(type: ElementType): number {
  return ELEMENT_TYPES[type].bytes;
}

export function viewElements<T extends ElementType>(type: T, buffer: ArrayBuffer): ElementView<T> {
  const View = ELEMENT_TYPES[type].view as unknown as new (buffer: ArrayBuffer) => ElementView<T>;
  return new View(buffer);
}
