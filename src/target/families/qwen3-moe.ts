import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import type { DenseMlpSpec, MixtureMlpSpec } from '../decoder-spec.ts';
import { attentionDecoder, type Family, familyKeys } from './family.ts';

const count = z.number().int().positive();
const mixtureKeys = z.object({
  num_experts: count.nullish(),
  /** The name of num_experts in configs of transformers 5. */
  num_local_experts: count.nullish(),
  num_experts_per_tok: count,
  moe_intermediate_size: count,
  norm_topk_prob: z.boolean(),
  decoder_sparse_step: count.nullish(),
  mlp_only_layers: z.array(z.number().int().nonnegative()).nullish(),
});

/** Qwen 3 with experts: attention as in the dense models; most layers, or all, choose among several feed-forwards. */
export const qwen3Moe: Family = (config, where) => {
  const keys = familyKeys(mixtureKeys, config, where);
  const experts = keys.num_experts ?? keys.num_local_experts;
  if (experts === undefined || experts === null || experts < keys.num_experts_per_tok) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected num_experts of at least num_experts_per_tok, ${keys.num_experts_per_tok}, got ${experts ?? 'none'}`,
    );
  }
  const mixture: MixtureMlpSpec = {
    kind: 'mixture',
    intermediate: keys.moe_intermediate_size,
    experts,
    expertsPerToken: keys.num_experts_per_tok,
    normaliseShares: keys.norm_topk_prob,
  };
  const dense: DenseMlpSpec = { kind: 'dense', intermediate: config.intermediate_size, bias: false };
  const step = keys.decoder_sparse_step ?? 1;
  const isMixture = (layer: number) => !keys.mlp_only_layers?.includes(layer) && (layer + 1) % step === 0;
  const bias = config.attention_bias ?? false;
  return attentionDecoder(config, where, { headNorms: true, qkvBias: bias, outputBias: bias }, (layer) =>
    isMixture(layer) ? mixture : dense,
  );
};
