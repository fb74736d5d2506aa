import type { DenseFamily } from './dense-family.ts';

/** Llama 2 and 3, SmolLM2 and relatives. */
export const llama: DenseFamily = (config) => ({
  headNorms: false,
  qkvBias: config.attention_bias ?? false,
  outputBias: config.attention_bias ?? false,
  mlpBias: config.mlp_bias ?? false,
});
