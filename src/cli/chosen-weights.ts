import { openCheckpoint } from '../checkpoint/checkpoint.ts';
import type { WeightFormat } from '../checkpoint/weight-plan.ts';
import { AppError } from '../core/app-error.ts';
import { embeddingWeight } from '../target/decoder-spec.ts';
import { readModelConfig } from '../target/hf-config.ts';

interface Chosen {
  readonly target: string;
  readonly device: 'cpu' | 'cuda';
  readonly weights?: WeightFormat | undefined;
}

/** What ONNX Runtime computes with on a device, and why not with the rest. */
const FORMATS = {
  cpu: {
    formats: ['int8', 'int4', 'f32'],
    reason: 'a CPU has no kernels of bf16 and computes f16 by way of f32',
  },
  cuda: {
    formats: ['bf16', 'f16', 'int8', 'int4'],
    reason: 'attention on CUDA has 16-bit kernels alone',
  },
} as const satisfies Record<Chosen['device'], { formats: readonly WeightFormat[]; reason: string }>;

/**
 * The format that was asked for; else int8 on a CPU, and on CUDA f16 for a target that is stored so, bf16 for others.
 * @throws AppError `invalid_config` when the device cannot compute with it
 */
export async function chosenWeights({ target, device, weights }: Chosen): Promise<WeightFormat> {
  if (weights === undefined) return device === 'cpu' ? 'int8' : await storedHalf(target);
  const { formats, reason } = FORMATS[device];
  if ((formats as readonly WeightFormat[]).includes(weights)) return weights;
  throw new AppError(
    'invalid_config',
    `Expected --weights ${formats.slice(0, -1).join(', ')} or ${formats.at(-1)} with --device ${device}, got ${weights}: ${reason}`,
    { details: { param: 'weights' } },
  );
}

async function storedHalf(folder: string): Promise<WeightFormat> {
  const { spec } = readModelConfig(folder);
  const table = (await openCheckpoint(folder)).tensor(embeddingWeight(spec));
  return table.type === 'plain' && table.dtype === 'F16' ? 'f16' : 'bf16';
}
