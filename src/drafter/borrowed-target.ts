import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import type { EmbeddingSpec } from '../graph/embedding.ts';
import type { LinearSpec } from '../graph/linear.ts';
import type { PrepackedWeights } from '../onnx/prepacked-weights.ts';
import type { OwnedTensor } from '../onnx/tensor.ts';

/** What a drafter may know of its target, and use of it. It must be disposed of before the target. */
export interface BorrowedTarget {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly layers: number;
  readonly maxContext: number;
  readonly maxSequences: number;
  readonly checkpoint: Checkpoint;
  /** The input embedding table, as a graph uses it. */
  readonly embedding: EmbeddingSpec;
  /** The output head, as a graph uses it. */
  readonly head: LinearSpec;
  /** The tensor of a weight named by {@link embedding} or {@link head}. */
  readonly weight: (name: string) => OwnedTensor;
  readonly prepacked: PrepackedWeights;
}
