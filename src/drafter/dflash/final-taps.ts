/** What a user says of the output of the target's last layer, for drafters that tap it and do not say which one they mean. */
import { AppError } from '../../core/app-error.ts';
import type { DflashConfig } from './dflash-config.ts';
import { FINAL_TAPS, type FinalTap } from './tapped-layers.ts';

export interface FinalTaps {
  /** Of those that tap the last layer and whose config does not say; all others are left alone. */
  readonly others: FinalTap | null;
  /** By the name that a drafter is served under. */
  readonly named: ReadonlyMap<string, FinalTap>;
}

/**
 * @param words `pre` or `post`, or `name=pre` and `name=post` for one drafter
 * @throws AppError `invalid_config` when they are something else or contradict each other
 */
export function parseFinalTaps(words: readonly string[]): FinalTaps {
  let others: FinalTap | null = null;
  const named = new Map<string, FinalTap>();
  for (const word of words) {
    const [, name, place] = /^(?:([\w.-]+)=)?(\w+)$/.exec(word) ?? [];
    const tap = FINAL_TAPS.find((known) => known === place);
    const before: FinalTap | null = name === undefined ? others : (named.get(name) ?? null);
    if (tap === undefined || (before !== null && before !== tap)) {
      throw new AppError(
        'invalid_config',
        `Expected pre or post, or <drafter>=pre and the like, once for each, got ${words.join(', ')}; correct --final-tap`,
      );
    }
    if (name === undefined) others = tap;
    else named.set(name, tap);
  }
  return { others, named };
}

/** For a drafter that takes the place of the named one, of which nothing was said itself. */
export function inPlaceOf(name: string, { others, named }: FinalTaps): FinalTaps {
  return { others: named.get(name) ?? others, named: new Map() };
}

/**
 * @param said of just this drafter; null: nothing
 * @throws AppError `invalid_config` when its config says something else
 */
export function refuseOtherTap({ finalTap, taps }: DflashConfig, said: FinalTap | null, folder: string): void {
  if (said === null || said === finalTap) return;
  const found =
    finalTap === null ? `a drafter that taps ${taps.join(', ')} and not the last layer` : `"${finalTap}" in its config`;
  throw new AppError(
    'invalid_config',
    `${folder}: expected final_tap "${said}", as --final-tap says of it, got ${found}; correct --final-tap`,
  );
}
