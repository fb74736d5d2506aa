/**
 * Which element types ONNX Runtime's CUDA provider has kernels for, for the operators that graphs are made of, and a check
 * of whole graphs against it: that a graph loads where there is no such provider says nothing of one.
 *
 * Source: `docs/OperatorKernels.md` of ONNX Runtime, CUDA provider, opset 21; of the newest operators the registrations in
 * `contrib_ops/cuda`.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { ModelProtoSchema, type NodeProto, type ValueInfoProto } from 'onnx-buf';
import type { GraphType } from '../../src/graph/graph-builder.ts';

const TYPES: Readonly<Record<number, GraphType>> = {
  1: 'f32',
  2: 'u8',
  6: 'i32',
  7: 'i64',
  9: 'bool',
  10: 'f16',
  16: 'bf16',
};

const ANY: readonly GraphType[] = ['f32', 'f16', 'bf16', 'i64', 'i32', 'u8', 'bool'];
const FLOATS: readonly GraphType[] = ['f32', 'f16', 'bf16'];
const NO_BF16: readonly GraphType[] = ['f32', 'f16'];
const SIXTEEN_BIT: readonly GraphType[] = ['f16', 'bf16'];
const ARITHMETIC: readonly GraphType[] = [...FLOATS, 'i32', 'i64', 'u8'];
const INDEX: readonly GraphType[] = ['i32', 'i64'];

/** Inputs and outputs by letters of types; the last letter of either holds for all further ones. */
interface Kernel {
  readonly inputs: string;
  readonly outputs: string;
  readonly T: readonly GraphType[];
  readonly I?: readonly GraphType[];
}

const elementwise = (T: readonly GraphType[]): Kernel => ({ inputs: 'T', outputs: 'T', T });

/** L is i64, M i32, U u8, B bool; T and I are one type each in a node, of those listed. */
const KERNELS: Readonly<Record<string, Kernel>> = {
  Add: elementwise(ARITHMETIC),
  CausalConvWithState: elementwise(NO_BF16),
  Concat: elementwise(ANY),
  Div: elementwise(ARITHMETIC),
  Equal: { inputs: 'T', outputs: 'B', T: ['bool', 'f32', 'f16', 'i32', 'i64'] },
  Exp: elementwise(NO_BF16),
  GatedRMSNorm: elementwise(FLOATS),
  Gather: { inputs: 'TI', outputs: 'T', T: ANY, I: INDEX },
  Gemm: elementwise(FLOATS),
  GroupQueryAttention: { inputs: 'TTTTTMMTTLT', outputs: 'T', T: SIXTEEN_BIT },
  Identity: elementwise(ANY),
  LinearAttention: elementwise(NO_BF16),
  LinearAttentionGate: elementwise(FLOATS),
  MatMul: elementwise(FLOATS),
  MatMulNBits: { inputs: 'TUTUMT', outputs: 'T', T: FLOATS },
  Mul: elementwise(ARITHMETIC),
  NonZero: { inputs: 'T', outputs: 'L', T: ['f32', 'f16', 'i32', 'i64', 'u8', 'bool'] },
  Range: elementwise(['f32', 'i32', 'i64']),
  ReduceLogSumExp: { inputs: 'TL', outputs: 'T', T: NO_BF16 },
  ReduceSum: { inputs: 'TL', outputs: 'T', T: [...FLOATS, 'i32', 'i64'] },
  Reshape: { inputs: 'TL', outputs: 'T', T: ANY },
  RotaryEmbedding: { inputs: 'TLTT', outputs: 'T', T: FLOATS },
  ScatterElements: { inputs: 'TIT', outputs: 'T', T: ANY, I: INDEX },
  Shape: { inputs: 'T', outputs: 'L', T: ANY },
  Sigmoid: elementwise(FLOATS),
  SimplifiedLayerNormalization: elementwise(FLOATS),
  Size: { inputs: 'T', outputs: 'L', T: ANY },
  SkipSimplifiedLayerNormalization: elementwise(FLOATS),
  Slice: { inputs: 'TI', outputs: 'T', T: ANY, I: INDEX },
  Softmax: elementwise(FLOATS),
  Split: { inputs: 'TL', outputs: 'T', T: ANY },
  Squeeze: { inputs: 'TL', outputs: 'T', T: ANY },
  Sub: elementwise(ARITHMETIC),
  Sum: elementwise(FLOATS),
  Tanh: elementwise(FLOATS),
  TopK: { inputs: 'TL', outputs: 'TL', T: [...NO_BF16, 'i32', 'i64'] },
  Transpose: elementwise(ANY),
  Unsqueeze: { inputs: 'TL', outputs: 'T', T: ANY },
};

const FIXED: Readonly<Record<string, GraphType>> = { L: 'i64', M: 'i32', U: 'u8', B: 'bool' };

/**
 * Follows the type of every value through a graph.
 * @param model serialised ModelProto
 * @returns what no CUDA kernel would take, in words; empty when all is well
 */
export function cudaTypeFaults(model: Uint8Array): string[] {
  const { graph } = fromBinary(ModelProtoSchema, model);
  if (graph === undefined) throw new Error('The model has no graph');
  const types = new Map<string, GraphType>();
  for (const input of graph.input) types.set(input.name, declaredType(input));
  for (const { name, dataType } of graph.initializer) types.set(name, typeOf(dataType, name));
  const faults: string[] = [];
  for (const node of graph.node) faults.push(...nodeFaults(node, types));
  for (const output of graph.output) {
    const [declared, computed] = [declaredType(output), types.get(output.name)];
    if (declared !== computed) faults.push(`${output.name} is declared as ${declared} and computed as ${computed}`);
  }
  return faults;
}

function declaredType({ name, type }: ValueInfoProto): GraphType {
  if (type?.value.case !== 'tensorType') throw new Error(`${name} is no tensor`);
  return typeOf(type.value.value.elemType, name);
}

function typeOf(number: number, name: string): GraphType {
  const type = TYPES[number];
  if (type === undefined) throw new Error(`${name} has element type ${number}, which no graph is made of`);
  return type;
}

function nodeFaults(node: NodeProto, types: Map<string, GraphType>): string[] {
  if (node.opType === 'Cast') {
    const to = node.attribute.find(({ name }) => name === 'to');
    types.set(node.output[0]!, typeOf(Number(to?.i), node.name));
    return types.has(node.input[0]!) ? [] : [`${node.name}: ${node.input[0]} is not computed before it`];
  }
  const kernel = KERNELS[node.opType];
  if (kernel === undefined) return [`${node.name}: ${node.opType} is not in the table of kernels`];
  const faults: string[] = [];
  const bound = new Map<string, GraphType>();
  const letterAt = (letters: string, index: number) => letters[Math.min(index, letters.length - 1)] as string;
  for (const [index, input] of node.input.entries()) {
    if (input === '') continue;
    const letter = letterAt(kernel.inputs, index);
    const type = types.get(input);
    if (type === undefined) {
      faults.push(`${node.name}: ${input} is not computed before it`);
      continue;
    }
    const expected = FIXED[letter] ?? bound.get(letter);
    if (expected === undefined) {
      bound.set(letter, type);
      const allowed = (letter === 'I' ? kernel.I : kernel.T) ?? [];
      if (!allowed.includes(type)) faults.push(`${node.name} takes ${allowed.join(', ')}, got ${type} as ${input}`);
    } else if (type !== expected) {
      faults.push(`${node.name} wants ${expected}, got ${type} as ${input}`);
    }
  }
  for (const [index, output] of node.output.entries()) {
    const letter = letterAt(kernel.outputs, index);
    const type = FIXED[letter] ?? bound.get(letter);
    if (output !== '' && type !== undefined) types.set(output, type);
  }
  return faults;
}
