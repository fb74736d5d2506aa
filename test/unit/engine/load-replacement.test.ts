import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { Drafter } from '../../../src/drafter/drafter.ts';
import type { DrafterContext } from '../../../src/drafter/drafter-context.ts';
import { loadReplacement } from '../../../src/engine/load-replacement.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';

let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'blockdraft-drafters-')));
  mkdirSync(join(folder, 'next'));
});

afterEach(() => rmSync(folder, { recursive: true }));

class Loaded extends ThrowingDrafter {
  disposals = 0;

  override async [Symbol.asyncDispose](): Promise<void> {
    this.disposals++;
  }
}

const WORKS = 1000;
const WEIGHT_BYTES = 4096;

let loads = 0;

function load(drafter: Drafter, freeBytes = WEIGHT_BYTES) {
  return loadReplacement(
    {
      folders: [folder],
      taps: [],
      source: () => ({
        name: 'next',
        taps: [],
        weightBytes: async () => WEIGHT_BYTES,
        load: async () => {
          loads++;
          return drafter;
        },
      }),
      context: { target: { hiddenSize: 8, vocabSize: 100 } } as DrafterContext,
      lengths: () => FIXED_LENGTH,
    },
    { name: 'live', drafter: new ThrowingDrafter('open'), draftTokens: 3, lengths: FIXED_LENGTH },
    'next',
    freeBytes,
  );
}

it('refuses weights for which there is no memory before they are loaded', async () => {
  const before = loads;
  await expect(load(new Loaded('open', WORKS), WEIGHT_BYTES - 1)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/at most 4095 bytes.*got 4096; wait until .* or start the server with a lower --kv-cache/),
    details: { param: 'path', code: 'drafter_refused' },
  });
  expect(loads).toBe(before);
  expect(await load(new Loaded('open', WORKS))).toMatchObject({ weightBytes: WEIGHT_BYTES });
});

it('refuses a drafter of another kind or with shorter drafts, which goes again', async () => {
  const other = Object.assign(new Loaded('open', WORKS), { kind: 'other' });
  await expect(load(other)).rejects.toThrow(/got a other drafter/);
  const short = Object.assign(new Loaded('open', WORKS), { maxDraftTokens: 2 });
  await expect(load(short)).rejects.toThrow(/for drafts of 3 tokens.*drafter for 2/);
  expect([other.disposals, short.disposals]).toEqual([1, 1]);
});

it('gives one that fits', async () => {
  const drafter = new Loaded('open', WORKS);
  expect(await load(drafter)).toMatchObject({ name: 'live', drafter, folder: join(folder, 'next'), draftTokens: 3 });
  expect(drafter.disposals).toBe(0);
});
