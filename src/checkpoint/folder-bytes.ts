/** What the weights of a folder take of the memory, told by the headers of its files. */
import { openCheckpoint } from './checkpoint.ts';
import { planBytes } from './plan-bytes.ts';
import type { PlannedWeight, WeightFormat } from './weight-plan.ts';

const F32_BYTES = 4;

/**
 * Bytes of all tensors of the folder in a format, without knowing what each is for: matrices are counted as a head is stored,
 * so that int4 is told as int8.
 * @throws AppError `invalid_checkpoint` when the folder has no weights that can be read
 */
export async function folderBytes(folder: string, format: WeightFormat): Promise<number> {
  const checkpoint = await openCheckpoint(folder);
  const weights = checkpoint.names.map((name): PlannedWeight => {
    const { shape } = checkpoint.tensor(name);
    return { name, source: name, shape, kind: shape.length === 2 ? 'head' : 'vector' };
  });
  return planBytes(weights, format, F32_BYTES);
}
