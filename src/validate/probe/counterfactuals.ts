/** The catalogue of changed assumptions around a given one. */
import type { TokenId } from '../../core/token.ts';
import type { RopeSpec } from '../../graph/rope.ts';
import type { FaultCode } from '../diagnosis.ts';
import { type Assumption, layerTap, sameAssumption, type TapSource } from './assumption.ts';
import type { Counterfactual } from './counterfactual.ts';

export interface CatalogueFacts {
  readonly targetLayers: number;
  readonly targetRope: RopeSpec;
  /** Ids that may be the mask, the likeliest first. */
  readonly maskCandidates: readonly TokenId[];
  readonly tokenName: (id: TokenId) => string;
}

/** Bases of the rotary embedding that published models use. */
const ROPE_BASES = [1e4, 1e5, 5e5, 1e6, 5e6, 1e7];

export function counterfactuals(base: Assumption, facts: CatalogueFacts): readonly Counterfactual[] {
  const all = [
    ...tapChanges(base, facts),
    ...contextChanges(base),
    ...blockChanges(base),
    ...maskChanges(base, facts),
    ...ropeChanges(base, facts),
  ];
  return all.filter(
    ({ assumption, slotShift }, index) =>
      (slotShift !== 0 || !sameAssumption(assumption, base)) &&
      all.findIndex((other) => other.slotShift === slotShift && sameAssumption(other.assumption, assumption)) === index,
  );
}

function change(name: string, fault: FaultCode, assumption: Assumption, advice: string, preference = 0): Counterfactual {
  return { name, fault, assumption, advice, slotShift: 0, preference };
}

function tapChanges(base: Assumption, { targetLayers }: CatalogueFacts): Counterfactual[] {
  const changes: Counterfactual[] = [];
  const { taps } = base;
  const layers = taps.map((tap) => (tap.kind === 'layer' ? tap.layer : null));
  const add = (name: string, fault: FaultCode, next: readonly TapSource[], advice: string, preference = 0) =>
    changes.push(change(name, fault, { ...base, taps: next }, advice, preference));
  const list = (ids: readonly (number | null)[]) => `[${ids.map((id) => id ?? 'zero').join(', ')}]`;
  const ids = (next: readonly (number | null)[], fault: FaultCode, name: string, preference: number) => {
    if (next.some((id) => id !== null && (id < -1 || id >= targetLayers))) return;
    add(
      `${name} ${list(next)}`,
      fault,
      next.map((id, i) => (id === null ? (taps[i] as TapSource) : layerTap(id))),
      `set target_layer_ids to ${list(next)} (id i is the output of layer i, hidden_states[i + 1] in Hugging Face's numbering) ` +
        'if serving only is wrong, or train on the layers that are served',
      preference,
    );
  };
  for (const shift of [-1, 1]) {
    const next = layers.map((layer) => (layer === null ? null : layer + shift));
    ids(next, 'layer-ids-off-by-one', `taps ${shift > 0 ? '+' : ''}${shift}`, 3);
  }
  for (const shift of [-2, 2]) {
    ids(
      layers.map((layer) => (layer === null ? null : layer + shift)),
      'layer-ids',
      `taps ${shift > 0 ? '+' : ''}${shift}`,
      1,
    );
  }
  ids(
    [...layers].sort((a, b) => (a ?? 0) - (b ?? 0)),
    'layer-ids-order',
    'taps sorted',
    3,
  );
  ids([...layers].reverse(), 'layer-ids-order', 'taps reversed', 2);
  for (let turn = 1; turn < layers.length; turn++) {
    ids([...layers.slice(turn), ...layers.slice(0, turn)], 'layer-ids-order', 'taps rotated', 1);
  }
  for (let i = 0; i < layers.length; i++) {
    for (let j = i + 1; j < layers.length; j++) {
      const next = [...layers];
      [next[i], next[j]] = [layers[j] as number | null, layers[i] as number | null];
      ids(next, 'layer-ids-order', 'taps swapped', 1);
    }
    for (const step of [-1, 1]) {
      const layer = layers[i];
      if (layer === null || layer === undefined) continue;
      ids(layers.with(i, layer + step), 'layer-ids', 'one tap moved', 0);
    }
  }
  for (const [index, tap] of taps.entries()) {
    if (tap.kind === 'zero') continue;
    const name = tap.kind === 'layer' ? `layer ${tap.layer}` : 'the final norm';
    add(
      `tap ${index} (${name}) zeroed`,
      'tap-unseen',
      taps.with(index, { kind: 'zero' }),
      `feed zeros to columns ${index} of fc (or set them to zero) until the drafter is trained again with all its taps: ` +
        `check that training captures ${name} and concatenates ${taps.length} taps, not ${taps.length - 1}`,
      2,
    );
    const other = otherSideOfFinalNorm(tap, targetLayers);
    if (other !== null) {
      const side = other.kind === 'final-norm' ? 'post' : 'pre';
      add(
        `tap ${index} ${side === 'post' ? 'after' : 'before'} the final norm`,
        'final-tap-norm',
        taps.with(index, other),
        `set final_tap to "${side}": training took the last layer's output ${side === 'post' ? 'after' : 'before'} the final norm ` +
          '(the last entry of hidden_states in Hugging Face is the normalised one)',
        2,
      );
    }
  }
  return changes;
}

function otherSideOfFinalNorm(tap: TapSource, targetLayers: number): TapSource | null {
  if (tap.kind === 'final-norm') return layerTap(targetLayers - 1);
  return tap.kind === 'layer' && tap.layer === targetLayers - 1 ? { kind: 'final-norm' } : null;
}

function contextChanges(base: Assumption): Counterfactual[] {
  return [
    change(
      'context includes the anchor',
      'context-inclusive',
      { ...base, contextEdge: base.contextEdge + 1 },
      'train with context rows strictly before the anchor (kv position < anchor): the row of the anchor holds the answer to slot 1 ' +
        'and does not exist yet when serving',
      2,
    ),
    change(
      'context without its last row',
      'context-short',
      { ...base, contextEdge: base.contextEdge - 1 },
      'train with all context rows before the anchor, the last one included, as serving has them',
    ),
  ];
}

function blockChanges(base: Assumption): Counterfactual[] {
  const attention = (causal: boolean) => base.attention.map((layer) => ({ ...layer, causal }));
  const changes: Counterfactual[] = [
    change(
      'block attention bidirectional',
      'causal-in-block',
      { ...base, attention: attention(false) },
      'set is_causal to false (or leave it out) if the drafter was trained with bidirectional blocks',
      2,
    ),
    change(
      'block attention causal',
      'causal-in-block',
      { ...base, attention: attention(true) },
      'set is_causal to true if the drafter was trained with causal blocks, or train with bidirectional ones',
      2,
    ),
  ];
  if (base.attention.some(({ window }) => window !== null)) {
    changes.push(
      change(
        'sliding window ignored',
        'sliding-window',
        { ...base, attention: base.attention.map((layer) => ({ ...layer, window: null })) },
        'set layer_types to full_attention if the drafter was trained without a window',
        1,
      ),
    );
  }
  for (const shift of [-2, -1, 1, 2]) {
    changes.push(
      change(
        `block positions ${shift > 0 ? '+' : ''}${shift}`,
        'position-shift',
        { ...base, blockShift: base.blockShift + shift },
        `training numbered the block's positions ${Math.abs(shift)} ${shift > 0 ? 'higher' : 'lower'} than serving does: ` +
          "the anchor has the position of its token, slot k that of the token it predicts; correct the trainer's position ids and train again",
        2,
      ),
    );
  }
  for (const slotShift of [-1, 1]) {
    changes.push({
      ...change(
        `labels ${slotShift > 0 ? '-' : '+'}1`,
        'label-shift',
        base,
        `training's labels are shifted by one slot: slot k must predict the token at its own position, anchor + k; correct the labels and train again`,
        1,
      ),
      slotShift,
    });
  }
  return changes;
}

/** Block sizes worth a try: what trainers choose, and one more or less. */
const BLOCK_SIZES = [4, 5, 6, 7, 8, 10, 12, 16];
export const LONGEST_BLOCK = 16;

/** Blocks of other sizes; they are judged by the slots that both sizes have. */
export function blockSizeChanges(base: Assumption): readonly Counterfactual[] {
  return BLOCK_SIZES.filter((size) => size !== base.blockSize).map((size) => blockSizeChange(base, size));
}

export function blockSizeChange(base: Assumption, blockSize: number): Counterfactual {
  return change(
    `block size ${blockSize}`,
    'block-size',
    { ...base, blockSize },
    `set block_size to ${blockSize} if the drafter was trained with blocks of that size`,
    1,
  );
}

function maskChanges(base: Assumption, { maskCandidates, tokenName }: CatalogueFacts): Counterfactual[] {
  return maskCandidates.map((id, index) =>
    change(
      `mask token ${id} ${tokenName(id)}`,
      'mask-token',
      { ...base, maskTokenId: id },
      `set mask_token_id to ${id} (${tokenName(id)}), whose embedding the drafter was trained with`,
      maskCandidates.length - index,
    ),
  );
}

function ropeChanges(base: Assumption, { targetRope }: CatalogueFacts): Counterfactual[] {
  const changes: Counterfactual[] = [];
  const add = (name: string, rope: RopeSpec, preference: number) =>
    changes.push(
      change(
        name,
        'rope',
        { ...base, rope },
        `give the drafter's config the rotary settings that it was trained with: ${name}`,
        preference,
      ),
    );
  add("target's rotary base", { ...base.rope, theta: targetRope.theta }, 2);
  add("target's rotary scaling", { ...base.rope, scaling: targetRope.scaling }, 1);
  add('no rotary scaling', { ...base.rope, scaling: { type: 'default' } }, 1);
  for (const theta of ROPE_BASES) add(`rope_theta ${theta}`, { ...base.rope, theta }, 0);
  return changes;
}
