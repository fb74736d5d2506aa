/** Describes an ONNX graph in memory. Weights are declared by name and shape only; their bytes are given to the session. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  StringStringEntryProtoSchema,
  type TensorProto,
  TensorProto_DataLocation,
  TensorProto_DataType,
  TensorProtoSchema,
  TensorShapeProto_DimensionSchema,
  TensorShapeProtoSchema,
  TypeProto_TensorSchema,
  TypeProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from 'onnx-buf';
import type { ComputeType } from './precision.ts';

/** Name of a tensor in the graph. */
export type Value = string;
/** A size, or the name of one that is only known when the graph runs. */
export type Dim = number | string;
export type GraphType = 'f32' | 'f16' | 'bf16' | 'i64' | 'i32' | 'u8' | 'bool';
/** Numbers are floats; integers are written as bigint. */
export type Attribute = number | bigint | string | readonly bigint[];

const DATA_TYPES: Readonly<Record<GraphType, TensorProto_DataType>> = {
  f32: TensorProto_DataType.FLOAT,
  f16: TensorProto_DataType.FLOAT16,
  bf16: TensorProto_DataType.BFLOAT16,
  i64: TensorProto_DataType.INT64,
  i32: TensorProto_DataType.INT32,
  u8: TensorProto_DataType.UINT8,
  bool: TensorProto_DataType.BOOL,
};

/**
 * Where weights are said to lie. ONNX Runtime insists that the file exists, in the folder that the session names, but
 * does not read it for a weight that the session is given.
 */
export const GIVEN_TO_SESSION = 'given-to-session.bin';

/** Operators that ONNX Runtime adds to the standard. */
export const MICROSOFT = 'com.microsoft';

/** A weight that the graph needs: the session must be given a tensor of this type and shape under this name. */
export interface DeclaredWeight {
  readonly name: string;
  readonly type: GraphType;
  readonly shape: readonly number[];
}

export interface BuiltGraph {
  /** Serialised ModelProto. */
  readonly model: Uint8Array;
  readonly weights: readonly DeclaredWeight[];
}

export class GraphBuilder {
  /** What the parts of the graph compute in, unless they say otherwise. */
  readonly compute: ComputeType;
  readonly #nodes: NodeProto[] = [];
  readonly #inputs: ValueInfoProto[] = [];
  readonly #outputs: ValueInfoProto[] = [];
  readonly #initializers: TensorProto[] = [];
  readonly #weights = new Map<string, DeclaredWeight>();
  readonly #constants = new Map<string, Value>();
  #counter = 0;

  constructor(compute: ComputeType = 'f32') {
    this.compute = compute;
  }

  input(name: string, type: GraphType, shape: readonly Dim[]): Value {
    this.#inputs.push(valueInfo(name, type, shape));
    return name;
  }

  /** Makes a value an output of the graph under its own name. */
  output(value: Value, type: GraphType, shape: readonly Dim[]): void {
    this.#outputs.push(valueInfo(value, type, shape));
  }

  /** Declares a weight; declaring it again with the same type and shape is fine. */
  weight(name: string, type: GraphType, shape: readonly number[]): Value {
    const known = this.#weights.get(name);
    if (known !== undefined) {
      if (known.type !== type || known.shape.join() !== shape.join()) {
        throw new Error(`Weight ${name} is declared as ${known.type}[${known.shape}] and as ${type}[${shape}]`);
      }
      return name;
    }
    this.#weights.set(name, { name, type, shape });
    this.#initializers.push(
      create(TensorProtoSchema, {
        name,
        dataType: DATA_TYPES[type],
        dims: shape.map(BigInt),
        dataLocation: TensorProto_DataLocation.EXTERNAL,
        externalData: [create(StringStringEntryProtoSchema, { key: 'location', value: GIVEN_TO_SESSION })],
      }),
    );
    return name;
  }

  /** A small integer constant, written into the graph. An empty shape makes a scalar. */
  ints(values: readonly number[], shape: readonly number[] = [values.length]): Value {
    return this.#constant(`ints:${values}:${shape}`, {
      dataType: DATA_TYPES.i64,
      dims: shape.map(BigInt),
      int64Data: values.map(BigInt),
    });
  }

  /** A small float constant, written into the graph. An empty shape makes a scalar. */
  floats(values: readonly number[], shape: readonly number[] = [values.length]): Value {
    return this.#constant(`floats:${values}:${shape}`, {
      dataType: DATA_TYPES.f32,
      dims: shape.map(BigInt),
      floatData: [...values],
    });
  }

  #constant(
    key: string,
    fields: { dataType: TensorProto_DataType; dims: bigint[]; int64Data?: bigint[]; floatData?: number[] },
  ): Value {
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const name = `constant.${this.#constants.size}`;
    this.#initializers.push(create(TensorProtoSchema, { name, ...fields }));
    this.#constants.set(key, name);
    return name;
  }

  /**
   * A value in another type; itself where it has that type.
   * @param name of the output, as {@link NodeOptions.name}; there is a node then in any case
   */
  cast(value: Value, from: GraphType, to: GraphType, name?: string): Value {
    const named = name === undefined ? {} : { name };
    if (from !== to) return this.node('Cast', [value], { attributes: { to: BigInt(DATA_TYPES[to]) }, ...named });
    return name === undefined ? value : this.node('Identity', [value], named);
  }

  /** Adds a node with one output. */
  node(op: string, inputs: readonly Value[], options: NodeOptions = {}): Value {
    return this.nodes(op, inputs, 1, options)[0] as Value;
  }

  /**
   * Adds a node with several outputs.
   * @param outputs their number, or their names, where an empty name leaves an output out
   */
  nodes(op: string, inputs: readonly Value[], outputs: number | readonly string[], options: NodeOptions = {}): Value[] {
    const id = `${op}.${this.#counter++}`;
    const names =
      typeof outputs === 'number'
        ? outputs === 1
          ? [options.name ?? id]
          : Array.from({ length: outputs }, (_, index) => `${options.name ?? id}.${index}`)
        : [...outputs];
    this.#nodes.push(
      create(NodeProtoSchema, {
        name: id,
        opType: op,
        domain: options.domain ?? '',
        input: [...inputs],
        output: names,
        attribute: Object.entries(options.attributes ?? {}).map(([name, value]) => attribute(name, value)),
      }),
    );
    return names;
  }

  build(): BuiltGraph {
    const model = create(ModelProtoSchema, {
      irVersion: 10n,
      producerName: 'blockdraft',
      opsetImport: [
        create(OperatorSetIdProtoSchema, { domain: '', version: 21n }),
        create(OperatorSetIdProtoSchema, { domain: MICROSOFT, version: 1n }),
      ],
      graph: create(GraphProtoSchema, {
        name: 'blockdraft',
        node: this.#nodes,
        input: this.#inputs,
        output: this.#outputs,
        initializer: this.#initializers,
      }),
    });
    return { model: toBinary(ModelProtoSchema, model), weights: [...this.#weights.values()] };
  }
}

export interface NodeOptions {
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, Attribute>>;
  /** Name of the output; needed only where it becomes an output of the graph. */
  readonly name?: string;
}

function attribute(name: string, value: Attribute): AttributeProto {
  if (typeof value === 'number')
    return create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.FLOAT, f: value });
  if (typeof value === 'bigint')
    return create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INT, i: value });
  if (typeof value === 'string') {
    return create(AttributeProtoSchema, {
      name,
      type: AttributeProto_AttributeType.STRING,
      s: new TextEncoder().encode(value),
    });
  }
  return create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INTS, ints: [...value] });
}

function valueInfo(name: string, type: GraphType, shape: readonly Dim[]): ValueInfoProto {
  const dim = shape.map((size) =>
    create(TensorShapeProto_DimensionSchema, {
      value: typeof size === 'number' ? { case: 'dimValue', value: BigInt(size) } : { case: 'dimParam', value: size },
    }),
  );
  return create(ValueInfoProtoSchema, {
    name,
    type: create(TypeProtoSchema, {
      value: {
        case: 'tensorType',
        value: create(TypeProto_TensorSchema, { elemType: DATA_TYPES[type], shape: create(TensorShapeProtoSchema, { dim }) }),
      },
    }),
  });
}
