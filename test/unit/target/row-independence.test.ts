/** Parts of the graphs whose rows must not depend on one another, at sizes that no model of the golden tests has. */
import { describe, expect, it } from 'vitest';
import { deltaGates } from '../../../src/graph/gated-delta.ts';
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import { mixtureOfExperts } from '../../../src/graph/mixture-of-experts.ts';
import { noise, runGraph } from '../graph/run-graph.ts';

const ROWS = 37;
const PIECES = [1, 2, 3, 5, 16];

type Compute = (start: number, rows: number) => Promise<Float32Array>;

async function expectSameInPieces(compute: Compute, width: number): Promise<Float32Array> {
  const whole = await compute(0, ROWS);
  for (const piece of PIECES) {
    for (let start = 0; start + piece <= ROWS; start += piece) {
      const expected = whole.slice(start * width, (start + piece) * width);
      const same = Buffer.from((await compute(start, piece)).buffer).equals(Buffer.from(expected.buffer));
      expect(same, `rows ${start} to ${start + piece - 1}`).toBe(true);
    }
  }
  return whole;
}

describe('a mixture of ten experts, eight for each row', () => {
  const [hidden, intermediate, experts, expertsPerToken] = [32, 16, 10, 8];
  const x = noise(ROWS * hidden, 1);
  const router = noise(experts * hidden, 2);
  const part = (expert: number, salt: number) => noise(hidden * intermediate, 10 * expert + salt);
  const weights = Object.fromEntries([
    ['mlp.gate.weight', router],
    ...Array.from({ length: experts }, (_, expert) => [
      [`mlp.experts.${expert}.gate_proj.weight`, part(expert, 3)],
      [`mlp.experts.${expert}.up_proj.weight`, part(expert, 4)],
      [`mlp.experts.${expert}.down_proj.weight`, part(expert, 5)],
    ]).flat(),
  ]);

  const compute =
    (normaliseShares: boolean): Compute =>
    (start, rows) => {
      const graph = new GraphBuilder();
      graph.input('x', 'f32', ['rows', hidden]);
      const y = mixtureOfExperts(graph, 'x', {
        prefix: 'mlp',
        hidden,
        intermediate,
        experts,
        expertsPerToken,
        normaliseShares,
        format: 'f32',
      });
      graph.output(y, 'f32', ['rows', hidden]);
      const data = x.slice(start * hidden, (start + rows) * hidden);
      const shape = [rows, hidden];
      return runGraph(graph, weights, { x: { type: 'f32', shape, data } }, { name: y, shape });
    };

  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

  function reference(row: number, normaliseShares: boolean): Float64Array {
    const input = x.slice(row * hidden, (row + 1) * hidden);
    const exps = Array.from({ length: experts }, (_, e) => Math.exp(dot(input, router.slice(e * hidden, (e + 1) * hidden))));
    const total = exps.reduce((sum, value) => sum + value, 0);
    const chosen = [...exps.keys()].sort((a, b) => exps[b]! - exps[a]!).slice(0, expertsPerToken);
    const mass = normaliseShares ? chosen.reduce((sum, e) => sum + exps[e]! / total, 0) : 1;
    const result = new Float64Array(hidden);
    for (const e of chosen) {
      const inner = Float32Array.from({ length: intermediate }, (_, i) => {
        const gate = dot(input, part(e, 3).slice(i * hidden, (i + 1) * hidden));
        return (gate / (1 + Math.exp(-gate))) * dot(input, part(e, 4).slice(i * hidden, (i + 1) * hidden));
      });
      for (let i = 0; i < hidden; i++) {
        result[i]! += (exps[e]! / total / mass) * dot(inner, part(e, 5).slice(i * intermediate, (i + 1) * intermediate));
      }
    }
    return result;
  }

  it.each([true, false])('gives each row its own result, with shares scaled to one: %s', async (normaliseShares) => {
    const whole = await expectSameInPieces(compute(normaliseShares), hidden);
    for (let row = 0; row < ROWS; row++) {
      const expected = reference(row, normaliseShares);
      for (let i = 0; i < hidden; i++) expect(whole[row * hidden + i]!).toBeCloseTo(expected[i]!, 4);
    }
  });
});

describe('the gates of six heads', () => {
  const heads = 6;
  const [a, b] = [noise(ROWS * heads, 6), noise(ROWS * heads, 7)];
  const [scale, bias] = [noise(heads, 8), noise(heads, 9)];

  const compute =
    (output: 'decay' | 'rate'): Compute =>
    (start, rows) => {
      const graph = new GraphBuilder();
      for (const name of ['a', 'b']) graph.input(name, 'f32', ['rows', heads]);
      const gates = deltaGates(graph, 'a', 'b', { scale: 'scale', bias: 'bias', valueHeads: heads });
      // Both have to be used for the node to compute both.
      for (const value of [gates.decay, gates.rate]) graph.output(value, 'f32', ['rows', heads]);
      const shape = [rows, heads];
      const piece = (data: Float32Array<ArrayBuffer>) => ({
        type: 'f32' as const,
        shape,
        data: data.slice(start * heads, (start + rows) * heads),
      });
      return runGraph(graph, { scale, bias }, { a: piece(a), b: piece(b) }, { name: gates[output], shape });
    };

  it('are a scaled softplus and a sigmoid, of each row by itself', async () => {
    const decay = await expectSameInPieces(compute('decay'), heads);
    const rate = await expectSameInPieces(compute('rate'), heads);
    for (let i = 0; i < ROWS * heads; i++) {
      expect(decay[i]!).toBeCloseTo(scale[i % heads]! * Math.log1p(Math.exp(a[i]! + bias[i % heads]!)), 5);
      expect(rate[i]!).toBeCloseTo(1 / (1 + Math.exp(-b[i]!)), 6);
    }
  });
});
