/** A drafter module that drafts what was told. */
import type { DrafterModule } from '../../../src/drafter/drafter-context.ts';
import { OracleDrafter } from '../oracle-drafter.ts';
import { nextInTold } from '../told-texts.ts';

export const createDrafter: DrafterModule['createDrafter'] = ({ target: { vocabSize } }) =>
  new OracleDrafter({ next: nextInTold, vocabSize });
