/**
 * DFlash 2. Its parts are held against their formulas, written out; as a whole against the drafts of the reference for
 * DFlash, which it is when its convolutions pass rows as they are and its selector says nothing.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { baseKernelPart, blockConvolution } from '../../src/drafter/dflash/block-convolution.ts';
import { PREDECESSORS, SELECTOR_PROJECTION, SUCCESSORS, walkLattice } from '../../src/drafter/dflash/candidate-lattice.ts';
import { readDflashConfig } from '../../src/drafter/dflash/dflash-config.ts';
import type { DraftRequest } from '../../src/drafter/drafter.ts';
import { GraphBuilder } from '../../src/graph/graph-builder.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { argmax } from '../../src/sampling/argmax.ts';
import { type GoldenTensor, readGoldenTensors } from '../support/golden-tensors.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { f32, safetensors } from '../unit/checkpoint/checkpoint-fixture.ts';
import { noise, runGraph } from '../unit/graph/run-graph.ts';
import { DflashPair, readGoldenRuns } from './open-dflash.ts';
import { speculate } from './speculate.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const NEVER = new AbortController().signal;
const KEYS = { conv_kernel_size: 2, conv_group_size: 8, selector_rank: 12, selector_top_k: 5 };

const temporary = new TemporaryFolder();
afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

/** A DFlash fixture as a DFlash 2 drafter: `strength` 0 changes nothing of what it drafts. */
function dflash2Folder(fixture: string, strength: number): string {
  const folder = join(temporary.path, `${fixture}-${strength}`);
  const known = JSON.parse(readFileSync(join(FIXTURES, fixture, 'config.json'), 'utf8'));
  const { hidden_size: hidden, vocab_size: vocab, num_hidden_layers: layers } = known;
  const tensors = new Map<string, GoldenTensor>(readGoldenTensors(join(FIXTURES, fixture, 'model.safetensors')));
  const { conv_kernel_size: width, conv_group_size: group, selector_rank: rank } = KEYS;
  const random = (salt: number, scale: number, ...shape: number[]): GoldenTensor => ({
    shape,
    data: noise(
      shape.reduce((product, size) => product * size, 1),
      salt,
    ).map((value) => scale * value),
  });
  for (let layer = 0; layer < layers; layer++) {
    for (const [i, part] of ['attention_conv', 'mlp_conv'].entries()) {
      const base = random(10 * layer + i, 0.3 * strength, 2, width, hidden);
      // The nearest tap of both sides passes the row itself.
      for (let side = 0; side < 2; side++) {
        for (let c = 0; c < hidden; c++) base.data[side * width * hidden + c]! += 1;
      }
      const projection = random(10 * layer + i + 2, 0.1 * strength, (2 * width * hidden) / group, hidden);
      tensors.set(`layers.${layer}.${part}.base_kernel`, base);
      tensors.set(`layers.${layer}.${part}.kernel_projection.weight`, projection);
    }
  }
  tensors.set(SELECTOR_PROJECTION, random(100, strength, rank, hidden));
  tensors.set(PREDECESSORS, random(101, 1, vocab, rank));
  tensors.set(SUCCESSORS, random(102, 1, vocab, rank));
  mkdirSync(folder);
  const entries = [...tensors].map(([name, { shape, data }]) => [name, f32(shape, data)]);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(entries)));
  const config = {
    ...known,
    architectures: ['DFlash2DraftModel'],
    dflash_config: { ...known.dflash_config, ...KEYS },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return folder;
}

const open = (folder: string) => DflashPair.open(folder, join(FIXTURES, 'dflash-target'));

describe('the convolution', () => {
  const [hidden, width, group] = [12, 3, 4];
  const groups = hidden / group;
  // Two blocks, of four rows and of three.
  const blocks = [0, 0, 0, 0, 1, 1, 1];
  const rows = blocks.length;
  const x = noise(rows * hidden, 1);
  const values = noise(rows * hidden, 2);
  const base = noise(2 * width * hidden, 3);
  const projection = noise(2 * width * groups * hidden, 4);

  it.each(['before', 'behind'] as const)('weighs a row and those in front of it in its block, %s', async (side) => {
    const graph = new GraphBuilder();
    const before = [1, 2].map((distance) => graph.input(`before.${distance}`, 'i64', ['rows']));
    graph.input('x', 'f32', ['rows', hidden]);
    graph.input('values', 'f32', ['rows', hidden]);
    const convolve = blockConvolution(graph, 'x', { prefix: 'conv', hidden, width, group, format: 'f32', before });
    const output = convolve('values', side);
    graph.output(output, 'f32', ['rows', hidden]);
    const placed = (distance: number) =>
      BigInt64Array.from(blocks, (block, row) => BigInt(blocks[row - distance] === block ? 1 + row - distance : 0));
    const shape = [rows, hidden];
    const result = await runGraph(
      graph,
      {
        'conv.kernel_projection.weight': projection,
        ...Object.fromEntries(
          Array.from({ length: 2 * width }, (_, part) => [
            baseKernelPart('conv', part),
            base.slice(part * hidden, (part + 1) * hidden),
          ]),
        ),
      },
      {
        x: { type: 'f32', shape, data: x },
        values: { type: 'f32', shape, data: values },
        'before.1': { type: 'i64', shape: [rows], data: placed(1) },
        'before.2': { type: 'i64', shape: [rows], data: placed(2) },
      },
      { name: output, shape },
    );
    const half = side === 'before' ? 0 : 1;
    for (let row = 0; row < rows; row++) {
      for (let c = 0; c < hidden; c++) {
        let expected = 0;
        for (let distance = 0; distance < width; distance++) {
          if (blocks[row - distance] !== blocks[row]) continue;
          const out = (half * width + distance) * groups + Math.floor(c / group);
          let dynamic = 0;
          for (let i = 0; i < hidden; i++) dynamic += projection[out * hidden + i]! * x[row * hidden + i]!;
          expected += (base[(half * width + distance) * hidden + c]! + dynamic) * values[(row - distance) * hidden + c]!;
        }
        expect(result[row * hidden + c]).toBeCloseTo(expected, 4);
      }
    }
  });
});

describe('the walk', () => {
  it('takes the best candidate behind the one that it took before', () => {
    // From 0 the second is best, from 1 the first.
    const scores = Float32Array.of(1, 3, 9, 9, /* */ 8, 0, 5, 4, /* */ 0, 1, 2, 0);
    const path = walkLattice(scores, 3, 2);
    expect(path.map(({ index }) => index)).toEqual([1, 0, 1]);
    expect(path[0]!.probability).toBeCloseTo(Math.exp(3) / (Math.exp(1) + Math.exp(3)), 6);
  });
});

/** What the selector makes of logits and hidden rows, slot by slot, as its formula has it. */
function selected(folder: string, anchor: TokenId, hidden: Float32Array, logits: Float32Array, drafts: number): TokenId[] {
  const tensors = readGoldenTensors(join(folder, 'model.safetensors'));
  const [projection, predecessors, successors] = [SELECTOR_PROJECTION, PREDECESSORS, SUCCESSORS].map(
    (name) => tensors.get(name)!.data,
  ) as [Float32Array, Float32Array, Float32Array];
  const { selector_rank: rank, selector_top_k: k } = KEYS;
  const width = hidden.length / drafts;
  const vocab = logits.length / drafts;
  const tokens: TokenId[] = [];
  for (let draft = 0; draft < drafts; draft++) {
    const row = logits.subarray(draft * vocab, (draft + 1) * vocab);
    const candidates = [...row.keys()].sort((a, b) => row[b]! - row[a]!).slice(0, k);
    const before = tokens.at(-1) ?? anchor;
    const scores = candidates.map((token) => {
      let score = row[token]!;
      for (let r = 0; r < rank; r++) {
        let projected = 0;
        for (let i = 0; i < width; i++) projected += projection[r * width + i]! * hidden[draft * width + i]!;
        score += predecessors[before * rank + r]! * projected * successors[token * rank + r]!;
      }
      return score;
    });
    tokens.push(candidates[argmax(Float32Array.from(scores))]!);
  }
  return tokens;
}

describe('a drafter', () => {
  it.each(['dflash-trained', 'dflash-sliding'])(
    'drafts as %s, whose layers and head it has, when nothing is added',
    async (name) => {
      await using pair = await open(dflash2Folder(name, 0));
      for (const run of readGoldenRuns(name)) {
        using cache = pair.target.openCache();
        using state = pair.drafter.open();
        let tokens = run.prompt;
        for (const step of run.steps) {
          const position = cache.length;
          const { taps } = await pair.target.step([{ cache, tokens, logitsFrom: tokens.length }]);
          state.observe({ position, tokens, taps, firstRow: 0 });
          const [proposal] = await pair.drafter.propose([{ state, anchor: step.anchor, budget: step.draft.length }], NEVER);
          expect(proposal!.tokens).toEqual(step.draft);
          tokens = [step.anchor, ...step.draft.slice(0, step.accepted)];
        }
      }
    },
  );

  it('chooses by its codebooks, for sequences of any drafts beside each other as for each alone', async () => {
    const folder = dflash2Folder('dflash-random', 1);
    await using pair = await open(folder);
    const runs = readGoldenRuns('dflash-random');
    const { blockSize } = readDflashConfig(folder);
    const prompts = runs.slice(0, 3).map(({ prompt }) => prompt);
    const owned: Disposable[] = [];
    const keep = <T extends Disposable>(member: T): T => {
      owned.push(member);
      return member;
    };
    const caches = prompts.map(() => keep(pair.target.openCache()));
    const request = (result: Awaited<ReturnType<typeof pair.target.step>>, i: number, budget: number): DraftRequest => {
      const state = keep(pair.drafter.open());
      const tokens = prompts[i]!;
      state.observe({ position: 0, tokens, taps: result.taps, firstRow: result.firstRow(i) });
      return { state, anchor: result.greedy(i, tokens.length - 1), budget };
    };
    const result = await pair.target.step(
      prompts.map((tokens, i) => ({ cache: caches[i]!, tokens, logitsFrom: tokens.length - 1 })),
    );
    const budgets = [blockSize - 1, 0, 3];
    const together = await pair.drafter.propose(
      budgets.map((budget, i) => request(result, i, budget)),
      NEVER,
    );
    expect(together.map(({ tokens }) => tokens.length)).toEqual(budgets);
    let differing = 0;
    for (const [i, budget] of budgets.entries()) {
      if (budget === 0) continue;
      const alone = request(result, i, budget);
      const [proposal] = await pair.drafter.propose([alone], NEVER);
      expect(proposal).toEqual(together[i]);
      const { hidden, logits } = pair.drafter.activations!;
      const width = hidden.shape[1]!;
      const expected = selected(folder, alone.anchor, hidden.data.subarray(width), logits.data, budget);
      expect(proposal!.tokens).toEqual(expected);
      const vocab = logits.shape[1]!;
      differing += expected.filter((token, d) => token !== argmax(logits.data.subarray(d * vocab, (d + 1) * vocab))).length;
    }
    // Else the codebooks had said nothing, and nothing was shown.
    expect(differing).toBeGreaterThan(0);
    for (const member of owned) member[Symbol.dispose]();
  });

  it('gives the answer of plain decoding', async () => {
    await using pair = await open(dflash2Folder('dflash-noncausal', 1));
    for (const run of readGoldenRuns('dflash-noncausal')) {
      const limits = { maxTokens: run.max_new_tokens, stopTokens: run.stop_token_ids ?? [], draftPastEnd: 0 };
      expect((await speculate(pair.target, pair.drafter, run.prompt, limits)).output).toEqual(run.output);
    }
  });
});
