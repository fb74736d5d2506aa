/**
 * How DFlash 2 chooses: each slot has candidates, and what one is worth depends on the token before it. The graph scores all
 * pairs of neighbouring candidates at once; a walk from the anchor then takes the best of each slot.
 *
 * Source: z-lab/dflash `dflash/model.py`, `CandidateSelector`.
 */
import { type EmbeddingFormat, embedding } from '../../graph/embedding.ts';
import type { GraphBuilder, Value } from '../../graph/graph-builder.ts';
import { type LinearFormat, linear, linearType } from '../../graph/linear.ts';

export const SELECTOR_PROJECTION = 'candidate_selector.hidden_projection.weight';
export const PREDECESSORS = 'candidate_selector.predecessor_codebook';
export const SUCCESSORS = 'candidate_selector.successor_codebook';

export interface CandidateLatticeSpec {
  readonly hidden: number;
  readonly vocab: number;
  readonly rank: number;
  readonly candidates: number;
  readonly format: LinearFormat;
  /** Storage of the codebooks. */
  readonly codebooks: { readonly predecessors: EmbeddingFormat; readonly successors: EmbeddingFormat };
}

/**
 * @param x [drafts, hidden], after the final norm
 * @param logits [drafts, vocab] of f32
 * @param anchors [sequences] of i64
 * @param before [drafts] of i64: where what stands before each draft is, among anchors followed by drafts
 * @returns candidates [drafts, k] of i64, best logit first; scores [drafts, k before, k] of f32
 */
export function candidateLattice(
  graph: GraphBuilder,
  inputs: { readonly x: Value; readonly logits: Value; readonly anchors: Value; readonly before: Value },
  spec: CandidateLatticeSpec,
): { readonly candidates: Value; readonly scores: Value } {
  const { candidates: k, rank, vocab } = spec;
  const [unary, candidates] = graph.nodes('TopK', [inputs.logits, graph.ints([k])], 2, {
    attributes: { axis: -1n, largest: 1n, sorted: 1n },
  }) as [Value, Value];
  const columns = graph.node('Unsqueeze', [inputs.anchors, graph.ints([1])]);
  const repeated = graph.node('Add', [columns, graph.ints(new Array<number>(k).fill(0), [1, k])]);
  const sources = graph.node('Concat', [repeated, candidates], { attributes: { axis: 0n } });
  const codes = (tokens: Value, weight: string, format: EmbeddingFormat) => {
    const flat = graph.node('Reshape', [tokens, graph.ints([-1])]);
    const rows = embedding(graph, flat, { weight, vocab, hidden: rank, format });
    return graph.node('Reshape', [graph.cast(rows, graph.compute, 'f32'), graph.ints([-1, k, rank])]);
  };
  const predecessors = codes(graph.node('Gather', [sources, inputs.before]), PREDECESSORS, spec.codebooks.predecessors);
  const successors = codes(candidates, SUCCESSORS, spec.codebooks.successors);
  const projected = linear(graph, inputs.x, {
    weight: SELECTOR_PROJECTION,
    inFeatures: spec.hidden,
    outFeatures: rank,
    format: spec.format,
  });
  const gate = graph.node('Unsqueeze', [graph.cast(projected, linearType(graph, spec.format), 'f32'), graph.ints([1])]);
  const pairs = graph.node('MatMul', [
    graph.node('Mul', [predecessors, gate]),
    graph.node('Transpose', [successors], { attributes: { perm: [0n, 2n, 1n] } }),
  ]);
  return { candidates, scores: graph.node('Add', [pairs, graph.node('Unsqueeze', [unary, graph.ints([1])])]) };
}

/**
 * Walks through one sequence's drafts.
 * @param candidates [drafts, k]
 * @param scores [drafts, k before, k]
 * @returns the candidate taken at each, as an index of 0 to k - 1, and its share among the candidates
 */
export function walkLattice(
  scores: Float32Array,
  drafts: number,
  k: number,
): { readonly index: number; readonly probability: number }[] {
  const path: { index: number; probability: number }[] = [];
  // What stands before the first draft is the anchor, in all of its places.
  let before = 0;
  for (let draft = 0; draft < drafts; draft++) {
    const row = scores.subarray((draft * k + before) * k, (draft * k + before + 1) * k);
    let index = 0;
    for (let i = 1; i < k; i++) if ((row[i] as number) > (row[index] as number)) index = i;
    const best = row[index] as number;
    const mass = row.reduce((sum, score) => sum + Math.exp(score - best), 0);
    path.push({ index, probability: 1 / mass });
    before = index;
  }
  return path;
}
