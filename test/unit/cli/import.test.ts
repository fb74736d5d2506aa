import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { readIntegers } from '../../../src/checkpoint/read-integers.ts';
import { importCommand } from '../../../src/cli/import-command.ts';
import { readDflashConfig } from '../../../src/drafter/dflash/dflash-config.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { CONFIG, dflashFolder, tensors } from '../drafter/dflash-fixture.ts';
import { runCommand } from './run-command.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');

describe('an import', () => {
  it.each(['dflash-target', 'qwen3_5-text', 'qwen3-moe', 'dflash-trained'])(
    'of %s has its tensors, quantised, and its config',
    async (name) => {
      const out = join(await temporaryFolder(), 'out');
      expect(await runCommand(importCommand(), join(FIXTURES, name), '--weights', 'int8', '--out', out)).toMatch(
        /files · .* of weights/,
      );
      const [from, to] = [await openCheckpoint(join(FIXTURES, name)), await openCheckpoint(out)];
      expect([...to.names].sort()).toEqual([...from.names].sort());
      expect(to.names.some((tensor) => to.tensor(tensor).type === 'quantized')).toBe(true);
      expect(await readdir(out)).toContain('config.json');
      for (const tensor of from.names) {
        expect(to.tensor(tensor).shape, tensor).toEqual(from.tensor(tensor).shape);
        const { shape } = from.tensor(tensor);
        const [before, after] = [await from.readRows(tensor, 0, shape[0]!), await to.readRows(tensor, 0, shape[0]!)];
        const largest = before.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        expect(Math.max(...after.map((value, i) => Math.abs(value - before[i]!))), tensor).toBeLessThanOrEqual(largest / 127);
      }
    },
  );

  it('of a drafter with a reduced vocabulary keeps its tables of ids as they are', async () => {
    const out = join(await temporaryFolder(), 'out');
    const folder = join(FIXTURES, 'speculators-reduced');
    await runCommand(importCommand(), folder, '--out', out);
    const [from, to] = [await openCheckpoint(folder), await openCheckpoint(out)];
    for (const name of ['d2t', 't2d']) {
      expect(to.tensor(name)).toMatchObject({ dtype: name === 'd2t' ? 'I64' : 'BOOL' });
      expect(await readIntegers(to.tensor(name))).toEqual(await readIntegers(from.tensor(name)));
    }
    expect(readDflashConfig(out)).toEqual(readDflashConfig(folder));
  });

  it('of a drafter with tensors that nothing uses is refused, unless that is allowed', async () => {
    const folder = await dflashFolder(CONFIG, { ...tensors(), 'aux_norm.weight': tensors()['norm.weight']! });
    const out = join(await temporaryFolder(), 'out');
    await expect(runCommand(importCommand(), folder, '--out', out)).rejects.toThrowError(/aux_norm\.weight/);
    await runCommand(importCommand(), folder, '--out', out, '--allow-unclaimed');
    expect((await openCheckpoint(out)).has('aux_norm.weight')).toBe(false);
  });

  it('into a folder with weights is refused', async () => {
    const folder = await dflashFolder();
    await expect(runCommand(importCommand(), folder, '--out', folder)).rejects.toThrowError(/without weights/);
  });
});
