/** A drafter module whose drafter fails in every round. */
import type { DrafterModule } from '../../../src/drafter/drafter-context.ts';
import { ThrowingDrafter } from '../throwing-drafter.ts';

export const createDrafter: DrafterModule['createDrafter'] = () => new ThrowingDrafter('propose');
