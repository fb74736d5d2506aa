/** Selection without a full sort. */
import { nextAbove } from './next-above.ts';

/**
 * The k-th largest of the values, counting equals; O(n log k) at worst and close to O(n) for small k, by a min-heap of the k largest so far.
 * @param values without NaN
 * @param k 1 .. values.length
 */
export function kthLargest(values: Float32Array, k: number): number {
  const heap = values.slice(0, k);
  for (let node = (k >> 1) - 1; node >= 0; node--) siftDown(heap, node);
  for (let index = nextAbove(values, heap[0]!, k); index < values.length; index = nextAbove(values, heap[0]!, index + 1)) {
    heap[0] = values[index]!;
    siftDown(heap, 0);
  }
  return heap[0]!;
}

function siftDown(heap: Float32Array, start: number): void {
  const value = heap[start]!;
  let node = start;
  for (;;) {
    let child = 2 * node + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[node] = heap[child]!;
    node = child;
  }
  heap[node] = value;
}
