import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { pullCommand } from '../../../src/cli/pull-command.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { COMMIT, FakeHub } from '../hub/fake-hub.ts';
import { runCommand } from './run-command.ts';

const FILES = { 'model.safetensors': Buffer.from('weights'), 'config.json': Buffer.from('{}') };

it('fetches from the hub that the environment names, as the account it names', async () => {
  const hub = await FakeHub.open({ files: FILES, large: ['model.safetensors'], token: 'hf_mine' });
  vi.stubEnv('HF_ENDPOINT', hub.endpoint);
  vi.stubEnv('HF_TOKEN', 'hf_mine');
  const folder = join(await temporaryFolder(), 'out');
  const output = await runCommand(pullCommand(), 'some/model@v1.0', '--to', folder);
  vi.unstubAllEnvs();
  expect(output).toContain(`2 files · 9 B · commit ${COMMIT}`);
  expect(await readdir(folder)).toEqual(expect.arrayContaining(Object.keys(FILES)));
});

it('says in one sentence that there is no network', async () => {
  vi.stubEnv('HF_ENDPOINT', 'http://127.0.0.1:1');
  const pulled = runCommand(pullCommand(), 'some/model', '--to', join(await temporaryFolder(), 'out'));
  await expect(pulled).rejects.toMatchObject({ code: 'unavailable', message: expect.stringMatching(/^Cannot reach [^\n]*$/) });
  vi.unstubAllEnvs();
});
