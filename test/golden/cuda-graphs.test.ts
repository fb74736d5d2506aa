/** Whether the graphs for CUDA would run there, as far as that shows without a GPU: types, kernels, weights. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/checkpoint.ts';
import { type PreparedWeights, prepareWeights } from '../../src/checkpoint/prepare-weights.ts';
import { readDflashConfig } from '../../src/drafter/dflash/dflash-config.ts';
import { buildDflashGraph } from '../../src/drafter/dflash/dflash-graph.ts';
import { OWN_EMBEDDING, OWN_HEAD, ownTables, planDflashWeights } from '../../src/drafter/dflash/dflash-weights.ts';
import type { EmbeddingFormat } from '../../src/graph/embedding.ts';
import {
  type BuiltGraph,
  type DeclaredWeight,
  GraphBuilder,
  type GraphType,
  MICROSOFT,
} from '../../src/graph/graph-builder.ts';
import type { LinearFormat } from '../../src/graph/linear.ts';
import { precisionOf } from '../../src/graph/precision.ts';
import { elementBytes, viewElements } from '../../src/onnx/element-type.ts';
import { Session } from '../../src/onnx/session.ts';
import { elementCount, OwnedTensor } from '../../src/onnx/tensor.ts';
import { buildDecoderGraph } from '../../src/target/decoder-graph.ts';
import { embeddingWeight } from '../../src/target/decoder-spec.ts';
import { planDecoderWeights } from '../../src/target/decoder-weights.ts';
import { readModelConfig } from '../../src/target/hf-config.ts';
import { buildReplayGraph } from '../../src/target/replay-graph.ts';
import { cudaTypeFaults } from '../support/cuda-kernels.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { testRuntime } from '../support/runtime.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const TARGETS = [
  'llama-tied',
  'llama-rope3',
  'qwen2-bias',
  'qwen3-untied',
  'qwen3-bf16',
  'qwen3-moe',
  'qwen3_5-text',
  'qwen3_5-nested',
];
const DRAFTERS = [
  'dflash-random',
  'dflash-sliding',
  'dflash-noncausal',
  'dflash-yarn',
  'speculators-full',
  'speculators-reduced',
];
const FORMATS: readonly LinearFormat[] = ['bf16', 'f16', 'int8', 'int4'];
const SLOTS = [1, 3];
const POSITIONS = 64;

const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

const DTYPES: Readonly<Record<string, string>> = { F32: 'f32', F16: 'f16', BF16: 'bf16', U8: 'u8' };

/** Weights that are computed at load, from what the checkpoint has or from the config alone. */
const COMPUTED = /^(draft\.)?rope\.(cos|sin)$|\.factors$|\.decay_scale$/;
/** What they are computed from. */
const SOURCES = /norm\.weight$|\.A_log$/;

/** Expects each weight of the graph in the checkpoint's, of its type and shape, and all of those used. */
function expectClaimed(declared: readonly DeclaredWeight[], prepared: PreparedWeights, borrowed: readonly string[] = []): void {
  for (const { name, type, shape } of declared) {
    if (COMPUTED.test(name) || borrowed.some((other) => name.startsWith(other))) continue;
    const found = prepared.get(name);
    expect({ name, type: DTYPES[found?.dtype ?? ''], shape: found?.shape }).toEqual({ name, type, shape });
  }
  const used = new Set(declared.map(({ name }) => name));
  const idle = [...prepared.keys()].filter((name) => !used.has(name));
  expect(idle.filter((name) => !SOURCES.test(name) || used.has(name))).toEqual([]);
}

function zeros(type: GraphType, shape: readonly number[]): OwnedTensor {
  const memory = new ArrayBuffer(elementCount(shape) * elementBytes(type));
  return OwnedTensor.over(testRuntime(), type, shape, viewElements(type, memory));
}

/** ONNX Runtime's own word on types: it resolves a graph before it looks for kernels, and a CPU has none of bf16. */
async function expectResolved({ model, weights }: BuiltGraph): Promise<void> {
  const initializers = new Map(weights.map(({ name, type, shape }) => [name, zeros(type, shape)]));
  const creating = Session.create(testRuntime(), model, { initializers, device: { kind: 'cpu', unpacked: true } });
  await expect(creating).rejects.toMatchObject({
    status: 'NOT_IMPLEMENTED',
    message: expect.stringContaining('Could not find an implementation'),
  });
  for (const tensor of initializers.values()) tensor[Symbol.dispose]();
}

describe.each(FORMATS)('for %s weights on CUDA', (format) => {
  const precision = precisionOf(format, 'cuda');

  it.each(TARGETS)('the graphs of %s are of types that kernels take, and use all weights', async (name) => {
    const folder = join(FIXTURES, name);
    const { spec } = readModelConfig(folder);
    const checkpoint = await openCheckpoint(folder);
    const plan = planDecoderWeights(spec);
    const prepared = await prepareWeights({ checkpoint, plan, format, compute: precision.compute, outDir: temporary.path });
    const stored = DTYPES[prepared.get(embeddingWeight(spec))?.dtype ?? ''] as EmbeddingFormat;
    const taps = [-1, 0, spec.layers.length - 1, spec.layers.length];
    for (const slots of SLOTS) {
      const embeddingFormat = spec.tiedHead && precision.head === 'int8' ? 'int8' : stored;
      const graph = buildDecoderGraph(spec, { slots, precision, embeddingFormat, taps, positions: POSITIONS });
      expect(cudaTypeFaults(graph.model)).toEqual([]);
      expectClaimed(graph.weights, prepared);
      if (precision.compute === 'bf16') await expectResolved(graph);
    }
    if (spec.gatedDelta !== null) expect(cudaTypeFaults(buildReplayGraph(spec).model)).toEqual([]);
  });

  it.each(DRAFTERS)('the graph of %s is of types that kernels take, and uses all weights', async (name) => {
    const folder = join(FIXTURES, name);
    const { spec } = readModelConfig(join(FIXTURES, 'dflash-target'));
    const config = readDflashConfig(folder, { targetLayers: spec.layers.length });
    const checkpoint = await openCheckpoint(folder);
    const own = ownTables(config, checkpoint);
    const plan = planDflashWeights(config, own);
    const prepared = await prepareWeights({ checkpoint, plan, format, compute: precision.compute, outDir: temporary.path });
    const table = own.embedding ? OWN_EMBEDDING : 'target.embedding';
    const head = own.head ? OWN_HEAD : 'target.head';
    const scaled = { ...config, inputEmbeddingScale: 2, outputMultiplier: 0.5, logitSoftcap: 30 };
    const second = { ...config, dflash2: { convWidth: 3, convGroup: 8, candidates: 4, rank: 6 } };
    for (const slots of SLOTS) {
      for (const drafter of [config, scaled, second]) {
        const graph = buildDflashGraph(drafter, {
          slots,
          precision,
          embedding: { weight: table, vocab: config.vocab, hidden: config.hidden, format: own.embedding ? 'f32' : 'bf16' },
          head: { weight: head, inFeatures: config.hidden, outFeatures: config.draftVocab, format: precision.head },
          positions: POSITIONS,
          codebooks: drafter.dflash2 === null ? null : { predecessors: 'bf16', successors: 'f32' },
        });
        expect(cudaTypeFaults(graph.model)).toEqual([]);
        if (drafter !== second) expectClaimed(graph.weights, prepared, ['target.']);
        if (precision.compute === 'bf16') await expectResolved(graph);
      }
    }
  });
});

describe('the check itself', () => {
  const faultsOf = (describeGraph: (graph: GraphBuilder) => void) => {
    const graph = new GraphBuilder();
    describeGraph(graph);
    return cudaTypeFaults(graph.build().model);
  };

  it('names an operator without a kernel of the type', () => {
    const faults = faultsOf((graph) => {
      const state = graph.input('x', 'bf16', [1, 4, 8]);
      graph.node('LinearAttention', [state, state, state], { domain: MICROSOFT });
    });
    expect(faults).toEqual(['LinearAttention.0 takes f32, f16, got bf16 as x']);
  });

  it('names inputs of two types, and an output declared as another', () => {
    const faults = faultsOf((graph) => {
      const product = graph.node('Mul', [graph.input('x', 'f16', [2]), graph.input('y', 'f32', [2])]);
      graph.output(product, 'f32', [2]);
    });
    expect(faults).toEqual(['Mul.0 wants f16, got f32 as y', 'Mul.0 is declared as f32 and computed as f16']);
  });

  it('finds the f32 graphs wanting: attention has no such kernel', () => {
    const { spec } = readModelConfig(join(FIXTURES, 'qwen3-untied'));
    const precision = precisionOf('f32', 'cuda');
    const options = { slots: 1, precision, embeddingFormat: 'f32' as const, taps: [], positions: POSITIONS };
    const faults = cudaTypeFaults(buildDecoderGraph(spec, options).model);
    expect(faults.length).toBeGreaterThan(0);
    for (const fault of faults) expect(fault).toMatch(/^GroupQueryAttention\.\d+ takes f16, bf16, got f32/);
  });
});
