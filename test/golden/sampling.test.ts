import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { penalize, type TokenCounts } from '../../src/sampling/penalties.ts';
import { processedDistribution } from '../../src/sampling/processed-distribution.ts';
import golden from './fixtures/sampling/golden.json' with { type: 'json' };
import targets from './fixtures/sampling/targets.json' with { type: 'json' };

interface Settings {
  readonly temperature: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly min_p?: number;
  readonly repetition_penalty?: number;
  readonly frequency_penalty?: number;
  readonly presence_penalty?: number;
}

function tokenCounts(prompt: readonly number[], output: readonly number[]): TokenCounts {
  const counts = new Map<number, number>();
  for (const id of output) counts.set(id, (counts.get(id) ?? 0) + 1);
  return { prompt: new Set(prompt), output: counts };
}

/** [vocab] probabilities of all ids. */
function processed(logits: Float32Array, settings: Settings, counts: TokenCounts): Float64Array {
  const penalties = {
    repetition: settings.repetition_penalty ?? 1,
    frequency: settings.frequency_penalty ?? 0,
    presence: settings.presence_penalty ?? 0,
  };
  const penalized = logits.slice();
  penalize(penalized, penalties, counts);
  const { ids, probabilities } = processedDistribution(penalized, {
    temperature: settings.temperature,
    topP: settings.top_p ?? 1,
    topK: settings.top_k ?? 0,
    minP: settings.min_p ?? 0,
  });
  const dense = new Float64Array(logits.length);
  ids.forEach((id, index) => {
    dense[id] = probabilities[index]!;
  });
  return dense;
}

function expectClose(actual: Float64Array, expected: ArrayLike<number>, tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  actual.forEach((probability, id) => {
    expect(probability > 0, `id ${id} kept`).toBe(expected[id]! > 0);
    expect(Math.abs(probability - expected[id]!), `id ${id}`).toBeLessThan(tolerance);
  });
}

describe('processed probabilities in vLLM order, hand-made rows', () => {
  it.each(golden.edge_cases)('$name', ({ logits, settings, prompt, output, vllm }) => {
    expectClose(processed(Float32Array.from(logits), settings, tokenCounts(prompt, output)), vllm, 2e-6);
  });
});

describe('processed probabilities of z-lab where no tie meets the border', () => {
  it.each(golden.zlab_probs.cases)('$settings', ({ settings, probs }) => {
    expectClose(processed(Float32Array.from(golden.zlab_probs.logits), settings, tokenCounts([], [])), probs, 2e-6);
  });
});

function floats(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

describe.each(targets)('processed probabilities in vLLM order after some output of $target', (target) => {
  const vocab = target.shape[1]!;
  const rows = floats(target.vllm);
  const settings: readonly Settings[] = target.settings;
  it.each(settings.map((setting, index) => ({ setting, index })))('$setting', ({ setting, index }) => {
    const expected = rows.subarray(index * vocab, (index + 1) * vocab);
    expectClose(processed(floats(target.logits), setting, tokenCounts(target.prompt, target.output)), expected, 1e-5);
  });
});
