import { fromBinary } from '@bufbuild/protobuf';
import { ModelProtoSchema, TensorProto_DataLocation } from 'onnx-buf';
import { describe, expect, it } from 'vitest';
import { GIVEN_TO_SESSION, GraphBuilder, MICROSOFT } from '../../../src/graph/graph-builder.ts';

function decode(graph: GraphBuilder) {
  const model = fromBinary(ModelProtoSchema, graph.build().model);
  if (model.graph === undefined) throw new Error('The model has no graph');
  return { model, graph: model.graph };
}

describe('weights', () => {
  it('are declared by name, without data', () => {
    const builder = new GraphBuilder();
    expect(builder.weight('w', 'f32', [2, 3])).toBe('w');
    expect(builder.build().weights).toEqual([{ name: 'w', type: 'f32', shape: [2, 3] }]);
    const [initializer] = decode(builder).graph.initializer;
    expect(initializer).toMatchObject({ name: 'w', dims: [2n, 3n], dataLocation: TensorProto_DataLocation.EXTERNAL });
    expect(initializer?.externalData).toMatchObject([{ key: 'location', value: GIVEN_TO_SESSION }]);
    expect(initializer?.rawData).toHaveLength(0);
  });

  it('may be declared twice alike, and are one', () => {
    const builder = new GraphBuilder();
    builder.weight('w', 'u8', [4]);
    builder.weight('w', 'u8', [4]);
    expect(builder.build().weights).toHaveLength(1);
    expect(decode(builder).graph.initializer).toHaveLength(1);
  });

  it.each([
    ['shape', 'f32', [3, 2]],
    ['type', 'f16', [2, 3]],
  ] as const)('may not be declared twice with another %s', (_, type, shape) => {
    const builder = new GraphBuilder();
    builder.weight('w', 'f32', [2, 3]);
    expect(() => builder.weight('w', type, shape)).toThrow(`Weight w is declared as f32[2,3] and as ${type}[${shape}]`);
  });
});

describe('constants', () => {
  it('are one where values and shape are the same', () => {
    const builder = new GraphBuilder();
    expect(builder.ints([1, -1])).toBe(builder.ints([1, -1]));
    expect(builder.floats([0.5], [])).toBe(builder.floats([0.5], []));
    expect(decode(builder).graph.initializer).toHaveLength(2);
  });

  it('differ by value, shape and type', () => {
    const builder = new GraphBuilder();
    const names = [
      builder.ints([1]),
      builder.ints([2]),
      builder.ints([1], []),
      builder.ints([1, 1]),
      builder.ints([11]),
      builder.floats([1]),
      builder.floats([1], []),
    ];
    expect(new Set(names).size).toBe(names.length);
    const values = decode(builder).graph.initializer.map(({ int64Data, floatData, dims }) => [int64Data, floatData, dims]);
    expect(values.slice(0, 3)).toEqual([
      [[1n], [], [1n]],
      [[2n], [], [1n]],
      [[1n], [], []],
    ]);
    expect(values.at(-1)).toEqual([[], [1], []]);
  });
});

describe('nodes', () => {
  it('have names and outputs of their own, unless one is given', () => {
    const builder = new GraphBuilder();
    const x = builder.input('x', 'f32', ['rows', 4]);
    const once = builder.node('Neg', [x]);
    const twice = builder.node('Neg', [once]);
    const named = builder.node('Neg', [twice], { name: 'y' });
    expect(new Set([x, once, twice, named]).size).toBe(4);
    expect(named).toBe('y');
    const nodes = decode(builder).graph.node;
    expect(nodes.map(({ input, output }) => [input, output])).toEqual([
      [['x'], [once]],
      [[once], [twice]],
      [[twice], ['y']],
    ]);
    expect(new Set(nodes.map(({ name }) => name)).size).toBe(3);
  });

  it('may have several outputs, and leave some out', () => {
    const builder = new GraphBuilder();
    const x = builder.input('x', 'f32', [4]);
    expect(new Set(builder.nodes('Split', [x], 3)).size).toBe(3);
    expect(builder.nodes('Other', [x, '', x], ['a', '', 'b'], { domain: MICROSOFT })).toEqual(['a', '', 'b']);
    expect(decode(builder).graph.node.at(-1)).toMatchObject({
      opType: 'Other',
      domain: MICROSOFT,
      input: ['x', '', 'x'],
      output: ['a', '', 'b'],
    });
  });

  it('take numbers as floats, bigints as integers, texts and lists of integers', () => {
    const builder = new GraphBuilder();
    builder.node('Op', [], { attributes: { f: 0.5, i: 3n, s: 'mode', list: [1n, 2n] } });
    const attributes = decode(builder).graph.node[0]?.attribute.map((a) => [
      a.name,
      a.f,
      a.i,
      new TextDecoder().decode(a.s),
      a.ints,
    ]);
    expect(attributes).toEqual([
      ['f', 0.5, 0n, '', []],
      ['i', 0, 3n, '', []],
      ['s', 0, 0n, 'mode', []],
      ['list', 0, 0n, '', [1n, 2n]],
    ]);
  });
});

describe('inputs and outputs', () => {
  it('have sizes that are known or named', () => {
    const builder = new GraphBuilder();
    const x = builder.input('x', 'i64', ['rows', 4]);
    builder.output(x, 'i64', ['rows', 4]);
    const { graph, model } = decode(builder);
    for (const [value] of [graph.input, graph.output]) {
      const type = value?.type?.value;
      const sizes = type?.case === 'tensorType' ? type.value.shape?.dim.map((dim) => dim.value.value) : undefined;
      expect(sizes).toEqual(['rows', 4n]);
    }
    expect(model.opsetImport.map(({ domain }) => domain)).toEqual(['', MICROSOFT]);
  });
});
