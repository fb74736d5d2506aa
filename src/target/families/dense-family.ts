/** What a family of dense decoders adds to the common config. */
import type { DecoderSpec } from '../decoder-spec.ts';
import type { HfConfig } from '../hf-config.ts';

/** The parts of a spec that differ between families. */
export type FamilyTraits = Pick<DecoderSpec, 'headNorms' | 'qkvBias' | 'outputBias' | 'mlpBias'>;

export type DenseFamily = (config: HfConfig) => FamilyTraits;
