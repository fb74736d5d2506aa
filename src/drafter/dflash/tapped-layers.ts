/** Which activations of the target a drafter fuses. */
import type { AppError } from '../../core/app-error.ts';

/** Where the last layer's output is taken: the residual stream itself, or behind the final norm. */
export type FinalTap = 'pre' | 'post';

export interface TapOptions {
  /** Null: not known yet; the target decides when the drafter is loaded. */
  readonly targetLayers: number | null;
  readonly finalTap: FinalTap | null;
  /** How a config writes a layer, for messages. */
  readonly written: (layer: number) => number;
  /** Key of the list, for messages. */
  readonly key: string;
}

/**
 * Ids of taps, in the order of the list.
 *
 * The output of the last layer exists before and behind the final norm, and code bases differ in which one they take
 * (Hugging Face's `hidden_states` has the normalised one, vLLM captures the other), so that a config which taps it says
 * nothing without `final_tap`.
 *
 * @param layers 0-based, -1 for the embedding
 * @returns the same, with the last layer as the number of layers when it is taken behind the final norm
 */
export function tappedLayers(
  layers: readonly number[],
  { targetLayers, finalTap, written, key }: TapOptions,
  refuse: (message: string) => AppError,
): readonly number[] {
  const highest = targetLayers === null ? Number.MAX_SAFE_INTEGER : targetLayers - 1;
  const outside = layers.find((layer) => layer < -1 || layer > highest);
  if (outside !== undefined) {
    const range = targetLayers === null ? `of at least ${written(-1)}` : `of ${written(-1)} to ${written(highest)}`;
    throw refuse(
      `expected ${key} ${range} (${written(-1)} is the embedding${targetLayers === null ? '' : `, ${targetLayers} layers`}), got ${written(outside)}`,
    );
  }
  const last = targetLayers === null ? Math.max(...layers) : targetLayers - 1;
  const tapsLast = layers.includes(last);
  if (finalTap === null) {
    if (targetLayers === null || !tapsLast) return layers;
    throw refuse(lastLayerMessage(key, written(last)));
  }
  if (!tapsLast) {
    throw refuse(
      `expected the last layer (${written(last)}) among ${key}, as final_tap is set, got ${layers.map(written).join(', ')}`,
    );
  }
  return finalTap === 'pre' ? layers : layers.map((layer) => (layer === last ? last + 1 : layer));
}

export function lastLayerMessage(key: string, id: number): string {
  return (
    `${key} taps the last layer (${id}), whose output exists before and behind the final norm; ` +
    'say which one it was trained on with final_tap "pre" or "post"'
  );
}
