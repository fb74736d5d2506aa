import type { DenseFamily } from './dense-family.ts';

/** Qwen 2 and 2.5: queries, keys and values always have a bias, the output never. */
export const qwen2: DenseFamily = () => ({ headNorms: false, qkvBias: true, outputBias: false, mlpBias: false });
