/** Facts of a DFlash drafter and its target that must agree, or every proposal would be noise while the text stays right. */
import { AppError } from '../../core/app-error.ts';
import type { DflashConfig } from './dflash-config.ts';
import type { OwnTables } from './dflash-weights.ts';
import { lastLayerMessage } from './tapped-layers.ts';

export interface TargetShape {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly layers: number;
}

export interface ComparedFact {
  /** Key of the drafter's config. */
  readonly name: string;
  readonly drafter: number;
  readonly target: number;
}

/** What is compared, whether it agrees or not. */
export function comparedFacts(config: DflashConfig, target: TargetShape, own: OwnTables): ComparedFact[] {
  const { layout, hidden, targetHidden, vocab, targetLayers } = config;
  const borrows = !own.embedding || !own.head;
  return [
    // What is borrowed must be as wide as the drafter, and the tapped rows as wide as fc takes them.
    ...(borrows || layout === 'z-lab' ? [{ name: 'hidden_size', drafter: hidden, target: target.hiddenSize }] : []),
    ...(layout === 'speculators' ? [{ name: 'target_hidden_size', drafter: targetHidden, target: target.hiddenSize }] : []),
    { name: 'vocab_size', drafter: vocab, target: target.vocabSize },
    ...(targetLayers === null ? [] : [{ name: 'num_target_layers', drafter: targetLayers, target: target.layers }]),
  ];
}

/** @throws AppError `incompatible_drafter` naming both numbers */
export function refuseMismatch(config: DflashConfig, target: TargetShape, own: OwnTables, folder: string): void {
  for (const { name, drafter, target: ofTarget } of comparedFacts(config, target, own)) {
    if (drafter === ofTarget) continue;
    throw new AppError(
      'incompatible_drafter',
      `${folder} was trained for another target: its ${name} is ${drafter}, the target's is ${ofTarget}`,
      { details: { name, drafter, target: ofTarget } },
    );
  }
  refuseTaps(config, target.layers, folder);
}

/** A config that does not know the target's depth could not tell which layer is the last. */
function refuseTaps({ taps, finalTap, layout }: DflashConfig, layers: number, folder: string): void {
  const refuse = (message: string) => new AppError('incompatible_drafter', `${folder}: ${message}`);
  const written = (tap: number) => (layout === 'speculators' ? tap + 1 : tap);
  const highest = Math.max(...taps);
  const last = finalTap === 'post' ? layers : layers - 1;
  if (highest > last)
    throw refuse(
      `taps layer ${written(highest)}, the target's last is ${written(layers - 1)}; use it with the target it was trained for`,
    );
  if (highest < last) {
    if (finalTap === null) return;
    throw refuse(
      `expected the target's last layer (${written(layers - 1)}) among its taps, as final_tap is set, got ${taps.map(written).join(', ')}`,
    );
  }
  if (finalTap === null) throw refuse(lastLayerMessage('its config', written(last)));
}
