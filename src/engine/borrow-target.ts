import type { BorrowedTarget } from '../drafter/borrowed-target.ts';
import type { LoadedTarget } from '../target/load-target.ts';

/** What drafters may know and use of a loaded target; they must be disposed of before it. */
export function borrowTarget({ target, checkpoint, embedding, head }: LoadedTarget): BorrowedTarget {
  return {
    ...target.facts,
    maxSequences: target.maxSequences,
    checkpoint,
    embedding,
    head,
    weight: (name) => target.weights.get(name),
    prepacked: target.prepacked,
  };
}
