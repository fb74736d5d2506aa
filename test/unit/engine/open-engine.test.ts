import { expect, it } from 'vitest';
import { openEngine } from '../../../src/engine/open-engine.ts';

it('refuses fewer rows than sequences, before anything is read', async () => {
  const opening = openEngine({
    target: 'no-such-folder',
    drafters: ['none'],
    drafterModules: [],
    draftTokens: 'auto',
    weights: 'f32',
    device: { kind: 'cpu' },
    threads: 1,
    maxContext: null,
    maxSequences: 9,
    maxRows: 8,
    maxWaiting: 0,
    servedModelName: null,
    cacheDir: null,
    observers: [],
  });
  await expect(opening).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringMatching(/\b9\b.*\b8\b/) });
});
