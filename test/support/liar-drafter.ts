import { WrongFromDrafter, type WrongFromOptions } from './wrong-from-drafter.ts';

/** Always wrong: nothing that it drafts is accepted. */
export class LiarDrafter extends WrongFromDrafter {
  override readonly kind = 'liar';

  constructor(options: Omit<WrongFromOptions, 'wrongFrom'>) {
    super({ ...options, wrongFrom: 0 });
  }
}
