import { readdirSync } from 'node:fs';
import { AppError } from '../../core/app-error.ts';

/** A vector that some trainers store beside the weights, in place of the mask token's row of the embedding table. */
const MASK_VECTOR = /^mask_embedding\.\w+$/;

/**
 * A drafter that was trained with a vector of its own and is given the table's row drafts badly, and nothing shows why.
 * @throws AppError `incompatible_drafter`
 */
export function refuseMaskVector(folder: string): void {
  const file = readdirSync(folder).find((name) => MASK_VECTOR.test(name));
  if (file === undefined) return;
  throw new AppError(
    'incompatible_drafter',
    `${folder}: expected a mask token with a row in the embedding table, got a mask vector in ${file}, which is not supported; choose another drafter`,
  );
}
