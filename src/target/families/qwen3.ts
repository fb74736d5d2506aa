import type { DenseFamily } from './dense-family.ts';

/** Qwen 3, dense: queries and keys are normalised head by head. */
export const qwen3: DenseFamily = (config) => ({
  headNorms: true,
  qkvBias: config.attention_bias ?? false,
  outputBias: config.attention_bias ?? false,
  mlpBias: false,
});
