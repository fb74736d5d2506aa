/** What a model wants from its checkpoint, in words that know no model. */
import { createHash } from 'node:crypto';
import { bytesOf } from './file-io.ts';

/** Float types that can be computed in. */
export type ComputeFormat = 'f32' | 'f16' | 'bf16';

/** How matrices are stored for computing. */
export type WeightFormat = ComputeFormat | 'int8' | 'int4';

/**
 * - `linear`: [out, in]. f32, f16, bf16: `name` of that type; int8: `name.q` U8 [out, blocks, 32] and `name.scale`
 *   [out, blocks] of what is computed in; int4: the same with `name.q` [out, blocks, 16]. blocks = ceil(in / 32).
 * - `head`: [vocabulary, hidden]. As linear, but int8 where the format says int4.
 * - `embedding`: [vocabulary, hidden] in the float type of the checkpoint, F32 when it is quantised there.
 * - `vector`: any shape, of what is computed in.
 * - `exact`: any shape, F32.
 */
export type WeightKind = 'linear' | 'head' | 'embedding' | 'vector' | 'exact';

export interface PlannedWeight {
  /** Name of the prepared tensor, before `.q` and `.scale`. */
  readonly name: string;
  /** Tensor of the checkpoint, or several whose rows follow one another. */
  readonly source: string | readonly string[];
  readonly kind: WeightKind;
  /** Shape of the result, after joining sources and choosing rows. */
  readonly shape: readonly number[];
  /** Keep only these rows, in this order. */
  readonly rows?: Int32Array;
}

export function sourceNames(weight: PlannedWeight): readonly string[] {
  return typeof weight.source === 'string' ? [weight.source] : weight.source;
}

/** Hexadecimal sha256 of everything that a plan, a format and what is computed in decide. */
export function planDigest(plan: readonly PlannedWeight[], format: WeightFormat, compute: ComputeFormat): string {
  const lines = plan.map((weight) => ({
    name: weight.name,
    source: sourceNames(weight),
    kind: weight.kind,
    shape: weight.shape,
    rows: weight.rows === undefined ? null : createHash('sha256').update(bytesOf(weight.rows)).digest('hex'),
  }));
  return createHash('sha256')
    .update(JSON.stringify([format, compute, lines]))
    .digest('hex');
}
