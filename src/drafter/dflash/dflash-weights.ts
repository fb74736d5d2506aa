/** The weights of a DFlash drafter in z-lab's layout: 11 tensors per layer and 3 more, and nothing else. */
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import type { PlannedWeight } from '../../checkpoint/weight-plan.ts';
import { AppError } from '../../core/app-error.ts';
import type { DflashConfig } from './dflash-config.ts';

export function planDflashWeights(config: DflashConfig): PlannedWeight[] {
  const weight = (kind: PlannedWeight['kind'], name: string, ...shape: number[]): PlannedWeight => ({
    name,
    source: name,
    kind,
    shape,
  });
  const { hidden, intermediate, headDim } = config;
  const width = config.heads * headDim;
  const kvWidth = config.kvHeads * headDim;
  const plan = [
    weight('linear', 'fc.weight', hidden, config.taps.length * hidden),
    weight('vector', 'hidden_norm.weight', hidden),
    weight('vector', 'norm.weight', hidden),
  ];
  for (let layer = 0; layer < config.layers; layer++) {
    const attention = (part: string) => `layers.${layer}.self_attn.${part}`;
    const mlp = (part: string) => `layers.${layer}.mlp.${part}`;
    const biases = config.attentionBias
      ? [
          weight('vector', attention('q_proj.bias'), width),
          weight('vector', attention('k_proj.bias'), kvWidth),
          weight('vector', attention('v_proj.bias'), kvWidth),
          weight('vector', attention('o_proj.bias'), hidden),
        ]
      : [];
    plan.push(
      weight('vector', `layers.${layer}.input_layernorm.weight`, hidden),
      weight('vector', `layers.${layer}.post_attention_layernorm.weight`, hidden),
      weight('linear', attention('q_proj.weight'), width, hidden),
      weight('linear', attention('k_proj.weight'), kvWidth, hidden),
      weight('linear', attention('v_proj.weight'), kvWidth, hidden),
      weight('linear', attention('o_proj.weight'), hidden, width),
      weight('vector', attention('q_norm.weight'), headDim),
      weight('vector', attention('k_norm.weight'), headDim),
      weight('linear', mlp('gate_proj.weight'), intermediate, hidden),
      weight('linear', mlp('up_proj.weight'), intermediate, hidden),
      weight('linear', mlp('down_proj.weight'), hidden, intermediate),
      ...biases,
    );
  }
  return plan;
}

/**
 * A tensor that nothing claims was trained for something this drafter would then do without: it would run, and be
 * quietly worse.
 * @throws AppError `incompatible_drafter`
 */
export function refuseUnclaimed(checkpoint: Checkpoint, plan: readonly PlannedWeight[], folder: string): void {
  const claimed = new Set(plan.flatMap((weight) => weight.source));
  const unclaimed = checkpoint.names.filter((name) => !claimed.has(name));
  const missing = [...claimed].filter((name) => !checkpoint.has(name));
  const list = (names: readonly string[]) =>
    `${names.slice(0, 4).join(', ')}${names.length > 4 ? ` and ${names.length - 4} more` : ''}`;
  if (missing.length > 0) {
    throw new AppError('incompatible_drafter', `${folder} lacks ${list(missing)}, which a DFlash drafter of this config has`);
  }
  if (unclaimed.length > 0) {
    throw new AppError(
      'incompatible_drafter',
      `${folder} has tensors that a DFlash drafter of this config does not: ${list(unclaimed)}`,
    );
  }
}
