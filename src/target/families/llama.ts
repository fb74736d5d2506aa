import { attentionDecoder, type Family } from './family.ts';

/** Llama 2 and 3, SmolLM2 and relatives. */
export const llama: Family = (config, where) => {
  const bias = config.attention_bias ?? false;
  return attentionDecoder(config, where, { qkvBias: bias, outputBias: bias }, () => ({
    kind: 'dense',
    intermediate: config.intermediate_size,
    bias: config.mlp_bias ?? false,
  }));
};
