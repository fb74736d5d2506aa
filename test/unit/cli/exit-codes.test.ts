/** What a script sees of a command that was not understood. */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';

const BIN = resolve(import.meta.dirname, '../../../bin/blockdraft.js');
const A_PROCESS_MS = 60_000;

it.each([
  // 1 would say that a gate failed, or that a drafter has a fault.
  [['validate', '--min-acceptance-length', 'x'], 2, /argument 'x' is invalid/],
  [['validate', '--min-speed-up', '1', '--speed-prompts', '0'], 2, /got 0, which times nothing/],
  [['diagnose', '--bogus'], 2, /unknown option '--bogus'/],
  [['load'], 104, /missing required argument 'script'/],
  [['validat'], 2, /unknown command 'validat'\n\(Did you mean validate\?\)/],
  // Without a command, options are those of `serve`.
  [['--port', 'x'], 2, /option '--port <n>' argument 'x' is invalid/],
  [['--version'], 0, /^$/],
  [['validate', '--help'], 0, /^$/],
])(
  '%j ends with %i',
  (words, code, message) => {
    const { status, stderr } = spawnSync(process.execPath, [BIN, ...words], { encoding: 'utf8' });
    expect(stderr).toMatch(message);
    expect(status).toBe(code);
  },
  A_PROCESS_MS,
);

it.each(['own.ts', 'own.mts', 'own.js', 'own.mjs'])(
  'a module of the user is read as what it is wherever it lies: %s',
  async (name) => {
    const file = join(await temporaryFolder(), name);
    await writeFile(file, 'export const drafter = null;\n');
    const { status, stderr } = spawnSync(process.execPath, [BIN, 'serve', '--drafter-module', file], { encoding: 'utf8' });
    expect(stderr).toMatch(/to export a function createDrafter, got drafter/);
    expect(status).toBe(1);
  },
  A_PROCESS_MS,
);
