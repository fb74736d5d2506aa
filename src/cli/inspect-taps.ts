/** Taps in the three ways of counting that configs and tools use. */

export interface NamedTap {
  /** z-lab's: output of layer i, -1 for the embedding. */
  readonly zlab: number;
  /** Index into Hugging Face's `hidden_states`; null where that list does not have it. */
  readonly huggingFace: number | null;
  /** vLLM's and speculators': the residual stream behind so many layers; null where it cannot be named. */
  readonly speculators: number | null;
  readonly meaning: string;
}

/**
 * @param taps as {@link DflashConfig.taps}
 * @param targetLayers null: not known, so that none of them is taken for the last
 */
export function namedTaps(taps: readonly number[], targetLayers: number | null): NamedTap[] {
  return taps.map((tap) => {
    if (tap === -1) return { zlab: -1, huggingFace: 0, speculators: 0, meaning: 'embedding' };
    if (tap === targetLayers) {
      const last = tap - 1;
      return { zlab: last, huggingFace: tap, speculators: null, meaning: `output of layer ${last}, behind the final norm` };
    }
    if (targetLayers !== null && tap === targetLayers - 1) {
      // Hugging Face's list ends with the normalised output.
      return { zlab: tap, huggingFace: null, speculators: tap + 1, meaning: `output of layer ${tap}, before the final norm` };
    }
    return { zlab: tap, huggingFace: tap + 1, speculators: tap + 1, meaning: `output of layer ${tap}` };
  });
}
