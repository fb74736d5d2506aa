/** Makes the context features of a recorded sequence: the tapped streams side by side. */

import { type RecordedSequence, recordedRows } from '../recording/recorded-sequence.ts';
import type { Assumption, TapSource } from './assumption.ts';
import { roundToHalf } from './round-to-half.ts';
import type { TargetHead } from './target-head.ts';

export class FeatureSource {
  readonly #head: TargetHead;
  readonly #hidden: number;
  readonly #embeddings = new WeakMap<RecordedSequence, Float32Array>();
  readonly #finals = new WeakMap<RecordedSequence, Float32Array>();

  constructor(head: TargetHead, hidden: number) {
    this.#head = head;
    this.#hidden = hidden;
  }

  /** @param features [rows, taps · hidden], overwritten */
  async fill(sequence: RecordedSequence, assumption: Assumption, features: Float32Array): Promise<void> {
    const { taps } = assumption;
    const hidden = this.#hidden;
    const rows = recordedRows(sequence);
    for (const [index, tap] of taps.entries()) {
      const stream = await this.#stream(sequence, tap);
      for (let row = 0; row < rows; row++) {
        const to = (row * taps.length + index) * hidden;
        if (stream === null) features.fill(0, to, to + hidden);
        else features.set(stream.subarray(row * hidden, (row + 1) * hidden), to);
      }
    }
    if (assumption.tapPrecision === 'f16') roundToHalf(features);
  }

  async #stream(sequence: RecordedSequence, tap: TapSource): Promise<Float32Array | null> {
    if (tap.kind === 'zero') return null;
    if (tap.kind === 'layer' && tap.layer >= 0) return sequence.layers[tap.layer] ?? null;
    const known = tap.kind === 'layer' ? this.#embeddings : this.#finals;
    let stream = known.get(sequence);
    if (stream === undefined) {
      const rows = recordedRows(sequence);
      stream =
        tap.kind === 'layer'
          ? await this.#head.embed(sequence.tokens.slice(0, rows))
          : await this.#head.finalNorm((sequence.layers.at(-1) as Float32Array).subarray(0, rows * this.#hidden));
      known.set(sequence, stream);
    }
    return stream;
  }
}
