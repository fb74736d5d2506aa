import { attentionDecoder, type Family } from './family.ts';

/** Qwen 3, dense: queries and keys are normalised head by head. */
export const qwen3: Family = (config, where) => {
  const bias = config.attention_bias ?? false;
  return attentionDecoder(config, where, { headNorms: true, qkvBias: bias, outputBias: bias }, () => ({
    kind: 'dense',
    intermediate: config.intermediate_size,
    bias: false,
  }));
};
