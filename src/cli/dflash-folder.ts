import { AppError } from '../core/app-error.ts';

/**
 * The folder of a command that takes no drafter but DFlash's.
 * @param drafter undefined or `dflash`: the folder beside the target, as `serve` has it
 * @throws AppError `invalid_config` for a drafter that has no folder
 */
export function dflashFolder(drafter: string | undefined, target: string): string {
  if (drafter === 'ngram' || drafter === 'none') {
    throw new AppError(
      'invalid_config',
      `Expected the folder of a DFlash drafter in --drafter, got ${drafter}, which has no layers`,
    );
  }
  return drafter === undefined || drafter === 'dflash' ? `${target.replace(/[\\/]+$/, '')}-dflash` : drafter;
}
