import { attentionDecoder, type Family } from './family.ts';

/** Qwen 2 and 2.5: queries, keys and values always have a bias, the output never. */
export const qwen2: Family = (config, where) =>
  attentionDecoder(config, where, { qkvBias: true }, () => ({
    kind: 'dense',
    intermediate: config.intermediate_size,
    bias: false,
  }));
