import { WrongFromDrafter, type WrongFromOptions } from './wrong-from-drafter.ts';

/** Knows the continuation: all that it drafts is accepted. */
export class OracleDrafter extends WrongFromDrafter {
  override readonly kind = 'oracle';

  constructor(options: Omit<WrongFromOptions, 'wrongFrom'>) {
    super({ ...options, wrongFrom: Number.POSITIVE_INFINITY });
  }
}
