/** Which activations of the target a drafter fuses. */
import type { AppError } from '../../core/app-error.ts';

/** Where the last layer's output is taken: the residual stream itself, or behind the final norm. */
export const FINAL_TAPS = ['pre', 'post'] as const;
export type FinalTap = (typeof FINAL_TAPS)[number];

export interface TapOptions {
  /** Null: not known yet; the target decides when the drafter is loaded. */
  readonly targetLayers: number | null;
  /** Of the config. */
  readonly finalTap: FinalTap | null;
  /** Where the last layer is tapped and the config does not say. */
  readonly defaultFinalTap: FinalTap | null;
  /** How a config writes a layer, for messages. */
  readonly written: (layer: number) => number;
  /** Key of the list, for messages. */
  readonly key: string;
}

export interface TappedLayers {
  /** In the order of the list; the last layer is the number of layers when it is taken behind the final norm. */
  readonly taps: readonly number[];
  /** Null where the last layer is not tapped, or may not be. */
  readonly finalTap: FinalTap | null;
}

/**
 * What a list of layers means.
 *
 * The output of the last layer exists before and behind the final norm, and code bases differ in which one they take
 * (Hugging Face's `hidden_states` has the normalised one, vLLM captures the other), so that a config which taps it says
 * nothing without `final_tap`.
 *
 * @param layers 0-based, -1 for the embedding
 */
export function tappedLayers(
  layers: readonly number[],
  { targetLayers, finalTap: ofConfig, defaultFinalTap, written, key }: TapOptions,
  refuse: (message: string) => AppError,
): TappedLayers {
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
  const finalTap = ofConfig ?? (tapsLast ? defaultFinalTap : null);
  if (finalTap === null) {
    if (targetLayers === null || !tapsLast) return { taps: layers, finalTap };
    throw refuse(lastLayerMessage(key, written(last)));
  }
  if (!tapsLast) {
    throw refuse(
      `expected the last layer (${written(last)}) among ${key}, as final_tap is set, got ${layers.map(written).join(', ')}`,
    );
  }
  return { taps: finalTap === 'pre' ? layers : layers.map((layer) => (layer === last ? last + 1 : layer)), finalTap };
}

export function lastLayerMessage(key: string, id: number): string {
  return (
    `${key} taps the last layer (${id}), whose output exists before and behind the final norm; ` +
    'say which one it was trained on with final_tap "pre" or "post"'
  );
}
