import { describe, expect, it } from 'vitest';
import { type EmbeddingFormat, embedding } from '../../../src/graph/embedding.ts';
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import type { ElementView } from '../../../src/onnx/element-type.ts';
import { noise, runGraph } from './run-graph.ts';

const VOCAB = 11;
const IDS = [10, 0, 3, 3, 7];

function lookUp(format: EmbeddingFormat, hidden: number, weights: Readonly<Record<string, ElementView<'f32' | 'u8' | 'f16'>>>) {
  const graph = new GraphBuilder();
  const rows = embedding(graph, graph.input('ids', 'i64', ['rows']), { weight: 'table', vocab: VOCAB, hidden, format });
  const named = graph.node('Identity', [rows], { name: 'y' });
  graph.output(named, 'f32', ['rows', hidden]);
  const ids = { type: 'i64', shape: [IDS.length], data: BigInt64Array.from(IDS, BigInt) } as const;
  return runGraph(graph, weights, { ids }, { name: 'y', shape: [IDS.length, hidden] });
}

function rowsOf(table: Float32Array, hidden: number): number[] {
  return IDS.flatMap((id) => [...table.subarray(id * hidden, (id + 1) * hidden)]);
}

describe('a token embedding', () => {
  it.each([64, 48, 20])('from an int8 table of %i columns is exactly the dequantised rows', async (hidden) => {
    const blocks = Math.ceil(hidden / 32);
    const q = Uint8Array.from(noise(VOCAB * blocks * 32, 1), (value) => Math.floor((value + 1) * 127.9));
    const scale = noise(VOCAB * blocks, 2).map((value) => Math.abs(value) / 100);
    const table = new Float32Array(VOCAB * hidden);
    for (let row = 0; row < VOCAB; row++) {
      for (let column = 0; column < hidden; column++) {
        const block = row * blocks + Math.floor(column / 32);
        table[row * hidden + column] = (q[block * 32 + (column % 32)]! - 128) * scale[block]!;
      }
    }
    expect([...(await lookUp('int8', hidden, { 'table.q': q, 'table.scale': scale }))]).toEqual(rowsOf(table, hidden));
  });

  it('from an f32 table is its rows', async () => {
    const table = noise(VOCAB * 12, 3);
    expect([...(await lookUp('f32', 12, { table }))]).toEqual(rowsOf(table, 12));
  });

  it.each([
    // 1.5, -2, 0.25 in each format
    ['f16', [0x3e00, 0xc000, 0x3400]],
    ['bf16', [0x3fc0, 0xc000, 0x3e80]],
  ] as const)('from a %s table has the values that the halves stand for', async (format, bits) => {
    const values = [1.5, -2, 0.25];
    const hidden = 6;
    const table = Uint16Array.from({ length: VOCAB * hidden }, (_, i) => bits[(i + Math.floor(i / hidden)) % 3]!);
    const expected = Float32Array.from({ length: VOCAB * hidden }, (_, i) => values[(i + Math.floor(i / hidden)) % 3]!);
    expect([...(await lookUp(format, hidden, { table }))]).toEqual(rowsOf(expected, hidden));
  });
});
