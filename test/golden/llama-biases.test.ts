/** Biases of a Llama. No reference has all of them: those of queries, keys and values are Qwen 2's, others are worked out by hand. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { type GoldenTensor, readGoldenTensors } from '../support/golden-tensors.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { f32, safetensors } from '../unit/checkpoint/checkpoint-fixture.ts';
import { noise } from '../unit/graph/run-graph.ts';
import { largestError } from './largest-error.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const TOLERANCE = 1e-4;
const LAST = 5;

const temporary = new TemporaryFolder();
afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

/** A fixture with other tensors and keys. */
function variant(fixture: string, name: string, keys: object, tensors: ReadonlyMap<string, GoldenTensor>): string {
  const folder = join(temporary.path, name);
  mkdirSync(folder);
  cpSync(join(FIXTURES, fixture, 'golden.json'), join(folder, 'golden.json'));
  const config = JSON.parse(readFileSync(join(FIXTURES, fixture, 'config.json'), 'utf8')) as object;
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...keys }));
  const contents = [...tensors].map(([key, { shape, data }]) => [key, f32(shape, data)] as const);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(contents)));
  return folder;
}

function vector(size: number, salt: number): GoldenTensor {
  return { shape: [size], data: noise(size, salt) };
}

function zeros({ shape, data }: GoldenTensor): GoldenTensor {
  return { shape, data: new Float32Array(data.length) };
}

function promptsOf(fixture: string): TokenId[][] {
  const golden = JSON.parse(readFileSync(join(FIXTURES, fixture, 'golden.json'), 'utf8')) as { cases: { prompt: TokenId[] }[] };
  return golden.cases.map(({ prompt }) => prompt);
}

describe('a Llama with biases', () => {
  it('of queries, keys and values is the reference of Qwen 2, which has those', async () => {
    const tensors = new Map(readGoldenTensors(join(FIXTURES, 'qwen2-bias', 'model.safetensors')));
    for (const [name, { shape }] of tensors) {
      const layer = /^(.*\.self_attn)\.o_proj\.weight$/.exec(name)?.[1];
      if (layer !== undefined) tensors.set(`${layer}.o_proj.bias`, zeros(vector(shape[0]!, 0)));
    }
    const folder = variant('qwen2-bias', 'queries', { model_type: 'llama', attention_bias: true }, tensors);
    const { target } = await loadTestTarget({ folder, cacheDir: temporary.path });
    const golden = readGoldenTensors(join(FIXTURES, 'qwen2-bias', 'golden.safetensors'));
    for (const [index, tokens] of promptsOf('qwen2-bias').entries()) {
      const logits = golden.get(`${index}.logits`)!;
      const [rows, vocab] = logits.shape as [number, number];
      using cache = target.openCache();
      const result = await target.step([{ cache, tokens, logitsFrom: tokens.length - rows }]);
      const expected = logits.data.subarray((rows - 1) * vocab);
      expect(largestError(result.logits(0, tokens.length - 1), expected)).toBeLessThan(TOLERANCE);
    }
    await target[Symbol.asyncDispose]();
  });

  it('of the output and the feed-forward adds them where they belong', async () => {
    const plain = new Map(readGoldenTensors(join(FIXTURES, 'llama-tied', 'model.safetensors')));
    const mlp = `model.layers.${LAST}.mlp`;
    // Without its gate and its way up, the feed-forward of the last layer is what its biases make of it.
    for (const part of ['gate_proj', 'up_proj']) plain.set(`${mlp}.${part}.weight`, zeros(plain.get(`${mlp}.${part}.weight`)!));
    const biased = new Map(plain);
    for (const [name, { shape }] of plain) {
      const part = /^(.*\.(?:self_attn|mlp)\.\w+_proj)\.weight$/.exec(name)?.[1];
      if (part !== undefined) biased.set(`${part}.bias`, zeros(vector(shape[0]!, 0)));
    }
    const down = plain.get(`${mlp}.down_proj.weight`)!;
    const [hidden, intermediate] = down.shape as [number, number];
    const [output, gate, up, back] = [vector(hidden, 1), vector(intermediate, 2), vector(intermediate, 3), vector(hidden, 4)];
    biased.set(`model.layers.${LAST}.self_attn.o_proj.bias`, output);
    biased.set(`${mlp}.gate_proj.bias`, gate);
    biased.set(`${mlp}.up_proj.bias`, up);
    biased.set(`${mlp}.down_proj.bias`, back);
    const within = gate.data.map((value, i) => (value / (1 + Math.exp(-value))) * up.data[i]!);
    const added = Float32Array.from({ length: hidden }, (_, row) => {
      const product = within.reduce((sum, value, i) => sum + value * down.data[row * intermediate + i]!, 0);
      return output.data[row]! + product + back.data[row]!;
    });

    const tap = async (name: string, keys: object, tensors: ReadonlyMap<string, GoldenTensor>) => {
      const folder = variant('llama-tied', name, keys, tensors);
      const { target } = await loadTestTarget({ folder, cacheDir: temporary.path, taps: [LAST] });
      const cache = target.openCache();
      const [tokens] = promptsOf('llama-tied') as [TokenId[]];
      const { taps } = await target.step([{ cache, tokens, logitsFrom: tokens.length }]);
      const rows = Float32Array.from(taps.get(LAST)!.data.subarray(0, tokens.length * hidden));
      cache[Symbol.dispose]();
      await target[Symbol.asyncDispose]();
      return rows;
    };
    const before = await tap('plain', {}, plain);
    const after = await tap('biased', { attention_bias: true, mlp_bias: true }, biased);
    expect(
      largestError(
        after,
        before.map((value, i) => value + added[i % hidden]!),
      ),
    ).toBeLessThan(TOLERANCE);
    expect(largestError(after, before)).toBeGreaterThan(100 * TOLERANCE);
  });
});
