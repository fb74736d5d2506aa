/** A drafter module that drafts anything but what was told. */
import type { DrafterModule } from '../../../src/drafter/drafter-context.ts';
import { LiarDrafter } from '../liar-drafter.ts';
import { nextInTold } from '../told-texts.ts';

export const createDrafter: DrafterModule['createDrafter'] = ({ target: { vocabSize } }) =>
  new LiarDrafter({ next: nextInTold, vocabSize });
