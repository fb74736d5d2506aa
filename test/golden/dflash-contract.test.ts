import { afterAll } from 'vitest';
import { describeDrafterContract } from '../contract/drafter-contract.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { DflashPair } from './open-dflash.ts';

const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

for (const name of ['dflash-trained', 'dflash-sliding', 'dflash-noncausal']) {
  // The suite disposes of drafter and target; the folder stays for the next test.
  describeDrafterContract({ name, open: () => DflashPair.openFixture(name, temporary) });
}
