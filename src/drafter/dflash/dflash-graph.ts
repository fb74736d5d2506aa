/**
 * The graph of one draft: takes in newly committed target rows and fills the blocks of several sequences.
 *
 * Rows are of two kinds. Context rows come from the target's taps; they become keys and values only. Block rows are the
 * anchor and the masks behind it; they attend to the context and to each other. Both are given to one attention node per
 * slot and layer, so that a single run appends the context to the drafter's cache and evaluates the block. The block's
 * keys and values are written behind the context; the next run starts at the end of the context and overwrites them.
 *
 * Source of the maths: z-lab/dflash `dflash/model.py`; Chen, Liang and Liu 2026 (arXiv 2602.06036), section 4.
 */
import { type EmbeddingSpec, embedding } from '../../graph/embedding.ts';
import { type BuiltGraph, GraphBuilder, type Value } from '../../graph/graph-builder.ts';
import { type LinearSpec, linear, linearType } from '../../graph/linear.ts';
import { addAndNorm, headNorm, rmsNorm } from '../../graph/norm.ts';
import type { Precision } from '../../graph/precision.ts';
import { declareSlot, needsWindowBias, slotAttention } from '../../graph/slot-attention.ts';
import { swiglu } from '../../graph/swiglu.ts';
import { blockConvolution, type Convolve } from './block-convolution.ts';
import { type CandidateLatticeSpec, candidateLattice } from './candidate-lattice.ts';
import type { DflashConfig } from './dflash-config.ts';

/** Names of the rotary tables [positions, headDim / 2], which are computed, not read. */
export const DRAFT_ROPE_COS = 'draft.rope.cos';
export const DRAFT_ROPE_SIN = 'draft.rope.sin';

export interface DflashGraphOptions {
  readonly slots: number;
  readonly precision: Precision;
  /** The target's table, which drafter and target share, or one of its own. */
  readonly embedding: EmbeddingSpec;
  /** The head: the target's, chosen rows of it, or one of its own. */
  readonly head: LinearSpec;
  readonly positions: number;
  /** Storage of a DFlash 2 drafter's codebooks; null for others. */
  readonly codebooks: CandidateLatticeSpec['codebooks'] | null;
}

/** Inputs and outputs by name. */
export const DRAFT_IO = {
  /** [step rows, hidden]: a tapped layer's output for all rows of the target's last step. */
  tap: (layer: number) => `tap.${layer}`,
  /** [context] of i64: the rows of that step which are new context. */
  contextRows: 'context_rows',
  /** [block] of i64: anchors and masks, sequence after sequence. */
  blockIds: 'block_ids',
  /** [1, slotRows] of i64: for each row of a slot, the block row that is its query; any for a context row. */
  queryRows: (slot: number) => `slot.${slot}.query_rows`,
  /** [1, slotRows] of i64: for each row of a slot, its place among context rows followed by block rows. */
  keyRows: (slot: number) => `slot.${slot}.key_rows`,
  /** [block] of i64: where each block row's attention stands among all slots' rows. */
  attended: 'attended',
  /** [drafts] of i64: the block rows whose logits are computed. */
  draftRows: 'draft_rows',
  /** [block] of i64: the row so far before each in its block, among a row of zeros and the block rows; DFlash 2 only. */
  rowsBefore: (distance: number) => `rows_before.${distance}`,
  /** [sequences] of i64; DFlash 2 only. */
  anchors: 'anchors',
  /** [drafts] of i64: what stands before each draft, among the anchors followed by the drafts; DFlash 2 only. */
  draftsBefore: 'drafts_before',
  /** [drafts, candidates] of i64, in place of {@link DRAFT_IO.ids}; DFlash 2 only. */
  candidates: 'draft_candidates',
  /** [drafts, candidates of the one before, candidates], in place of {@link DRAFT_IO.probabilities}; DFlash 2 only. */
  lattice: 'draft_lattice',
  /** [drafts, head rows] */
  logits: 'draft_logits',
  /** [drafts, 1] of i64: the head row with the largest logit. */
  ids: 'draft_ids',
  /** [drafts, 1]: its probability under the drafter. */
  probabilities: 'draft_probabilities',
  /** [block, hidden]: after the final norm. */
  hidden: 'draft_hidden',
} as const;

export function buildDflashGraph(config: DflashConfig, options: DflashGraphOptions): BuiltGraph {
  const { compute, linear: format } = options.precision;
  const graph = new GraphBuilder(compute);
  const { hidden } = config;
  const taps = config.taps.map((layer) => graph.input(DRAFT_IO.tap(layer), 'f32', ['step_rows', config.targetHidden]));
  const contextRows = graph.input(DRAFT_IO.contextRows, 'i64', ['context']);
  const blockIds = graph.input(DRAFT_IO.blockIds, 'i64', ['block']);
  const attended = graph.input(DRAFT_IO.attended, 'i64', ['block']);
  const draftRows = graph.input(DRAFT_IO.draftRows, 'i64', ['drafts']);
  const slots = Array.from({ length: options.slots }, (_, index) => ({
    ...declareSlot(graph, index, config.attention.some(needsWindowBias)),
    queryRows: graph.input(DRAFT_IO.queryRows(index), 'i64', [1, `slot_rows.${index}`]),
    keyRows: graph.input(DRAFT_IO.keyRows(index), 'i64', [1, `slot_rows.${index}`]),
  }));
  const { dflash2 } = config;
  const before = Array.from({ length: (dflash2?.convWidth ?? 1) - 1 }, (_, i) =>
    graph.input(DRAFT_IO.rowsBefore(i + 1), 'i64', ['block']),
  );
  /** The convolution around a part of a layer; without DFlash 2 rows pass as they are. */
  const convolution = (x: Value, prefix: string): Convolve => {
    if (dflash2 === null) return (rows) => rows;
    return blockConvolution(graph, x, { prefix, hidden, width: dflash2.convWidth, group: dflash2.convGroup, format, before });
  };
  const tableShape = [options.positions, config.headDim / 2];
  const rotary = {
    cos: graph.weight(DRAFT_ROPE_COS, compute, tableShape),
    sin: graph.weight(DRAFT_ROPE_SIN, compute, tableShape),
  };
  const norm = (weight: string, size = hidden) => ({ weight, size, epsilon: config.normEpsilon });

  const features = taps.map((tap) => graph.cast(graph.node('Gather', [tap, contextRows]), 'f32', compute));
  const fused = linear(graph, graph.node('Concat', features, { attributes: { axis: 1n } }), {
    weight: 'fc.weight',
    inFeatures: config.taps.length * config.targetHidden,
    outFeatures: hidden,
    format,
  });
  // The context is not normalised again by the layers: hidden_norm is all it gets.
  const context = rmsNorm(graph, fused, norm('hidden_norm.weight'));

  let residual = embedding(graph, blockIds, options.embedding);
  if (config.inputEmbeddingScale !== 1)
    residual = graph.node('Mul', [residual, graph.cast(graph.floats([config.inputEmbeddingScale], []), 'f32', compute)]);
  let normalised = rmsNorm(graph, residual, norm('layers.0.input_layernorm.weight'));
  for (let layer = 0; layer < config.layers; layer++) {
    const prefix = `layers.${layer}`;
    const project = (x: Value, part: string, inFeatures: number, outFeatures: number) =>
      linear(graph, x, {
        weight: `${prefix}.self_attn.${part}.weight`,
        inFeatures,
        outFeatures,
        format,
        ...(config.attentionBias ? { bias: `${prefix}.self_attn.${part}.bias` } : {}),
      });
    const width = config.heads * config.headDim;
    const kvWidth = config.kvHeads * config.headDim;
    const aroundAttention = convolution(normalised, `${prefix}.attention_conv`);
    const attending = aroundAttention(normalised, 'before');
    const rows = graph.node('Concat', [context, attending], { attributes: { axis: 0n } }); // [context + block, hidden]
    const query = headNorm(graph, project(attending, 'q_proj', hidden, width), config.heads, {
      ...norm(`${prefix}.self_attn.q_norm.weight`, config.headDim),
    });
    const key = headNorm(graph, project(rows, 'k_proj', hidden, kvWidth), config.kvHeads, {
      ...norm(`${prefix}.self_attn.k_norm.weight`, config.headDim),
    });
    const value = project(rows, 'v_proj', hidden, kvWidth);
    const perSlot = slots.map((slot) =>
      slotAttention(
        graph,
        slot,
        graph.node('Gather', [query, slot.queryRows]),
        graph.node('Gather', [key, slot.keyRows]),
        graph.node('Gather', [value, slot.keyRows]),
        {
          heads: config.heads,
          kvHeads: config.kvHeads,
          headDim: config.headDim,
          layer,
          rotary,
          causal: config.attention[layer]?.causal ?? false,
          window: config.attention[layer]?.window ?? null,
        },
      ),
    );
    const joined = perSlot.length === 1 ? (perSlot[0] as Value) : graph.node('Concat', perSlot, { attributes: { axis: 1n } });
    const blockRows = graph.node('Gather', [graph.node('Reshape', [joined, graph.ints([-1, width])]), attended]);
    const attention = aroundAttention(project(blockRows, 'o_proj', width, hidden), 'behind');
    const afterAttention = addAndNorm(graph, attention, residual, norm(`${prefix}.post_attention_layernorm.weight`));
    const aroundMlp = convolution(afterAttention.normalised, `${prefix}.mlp_conv`);
    const projected = swiglu(graph, aroundMlp(afterAttention.normalised, 'before'), {
      prefix: `${prefix}.mlp`,
      hidden,
      intermediate: config.intermediate,
      format,
      bias: false,
    });
    const feedForward = aroundMlp(projected, 'behind');
    const next = layer + 1 < config.layers ? `layers.${layer + 1}.input_layernorm.weight` : 'norm.weight';
    const afterLayer = addAndNorm(graph, feedForward, afterAttention.sum, norm(next));
    residual = afterLayer.sum;
    normalised = afterLayer.normalised;
  }
  graph.cast(normalised, compute, 'f32', DRAFT_IO.hidden);

  const drafting = graph.node('Gather', [normalised, draftRows]);
  const computed = linear(graph, drafting, options.head);
  let logits = graph.cast(computed, linearType(graph, options.head.format), 'f32');
  if (config.outputMultiplier !== 1) logits = graph.node('Mul', [logits, graph.floats([config.outputMultiplier], [])]);
  if (config.logitSoftcap !== null) {
    const cap = graph.floats([config.logitSoftcap], []);
    logits = graph.node('Mul', [graph.node('Tanh', [graph.node('Div', [logits, cap])]), cap]);
  }
  graph.nodes('Identity', [logits], [DRAFT_IO.logits]);
  if (dflash2 === null || options.codebooks === null) declareChoice(graph, logits);
  else {
    const { rank, candidates } = dflash2;
    const anchors = graph.input(DRAFT_IO.anchors, 'i64', ['sequences']);
    const lattice = candidateLattice(
      graph,
      { x: drafting, logits, anchors, before: graph.input(DRAFT_IO.draftsBefore, 'i64', ['drafts']) },
      { hidden, vocab: config.vocab, rank, candidates, format, codebooks: options.codebooks },
    );
    graph.nodes('Identity', [lattice.candidates], [DRAFT_IO.candidates]);
    graph.nodes('Identity', [lattice.scores], [DRAFT_IO.lattice]);
    graph.output(DRAFT_IO.candidates, 'i64', ['drafts', candidates]);
    graph.output(DRAFT_IO.lattice, 'f32', ['drafts', candidates, candidates]);
  }
  graph.output(DRAFT_IO.logits, 'f32', ['drafts', options.head.outFeatures]);
  graph.output(DRAFT_IO.hidden, 'f32', ['block', hidden]);
  return graph.build();
}

/** Each draft row's likeliest token by itself, with its probability. */
function declareChoice(graph: GraphBuilder, logits: Value): void {
  const [top] = graph.nodes('TopK', [logits, graph.ints([1])], ['draft_top', DRAFT_IO.ids], {
    attributes: { axis: -1n, largest: 1n, sorted: 1n },
  });
  const mass = graph.node('ReduceLogSumExp', [logits, graph.ints([-1])], { attributes: { keepdims: 1n } });
  graph.nodes('Exp', [graph.node('Sub', [top as Value, mass])], [DRAFT_IO.probabilities]);
  graph.output(DRAFT_IO.ids, 'i64', ['drafts', 1]);
  graph.output(DRAFT_IO.probabilities, 'f32', ['drafts', 1]);
}
