import { expect, it } from 'vitest';
import { dflashFolder } from '../../../src/cli/dflash-folder.ts';

it.each([
  [undefined, 'models/a', 'models/a-dflash'],
  ['dflash', 'models/a/', 'models/a-dflash'],
  ['runs/v5', 'models/a', 'runs/v5'],
])('the drafter %s of the target %s is in %s', (drafter, target, folder) => {
  expect(dflashFolder(drafter, target)).toBe(folder);
});

it.each(['ngram', 'none'])('%s has no folder', (drafter) => {
  expect(() => dflashFolder(drafter, 'models/a')).toThrow(/folder of a DFlash drafter in --drafter, got/);
});
