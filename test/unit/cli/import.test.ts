import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { readIntegers } from '../../../src/checkpoint/read-integers.ts';
import { importCommand } from '../../../src/cli/import-command.ts';
import { readDflashConfig } from '../../../src/drafter/dflash/dflash-config.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { CONFIG, dflashFolder, SPECULATORS_CONFIG, tensors } from '../drafter/dflash-fixture.ts';
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

  it('of a drafter that leaves its layers to its target takes them from the one that is named', async () => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: null }, tensors(3));
    const out = join(await temporaryFolder(), 'out');
    await expect(runCommand(importCommand(), folder, '--out', out)).rejects.toThrowError(/name the target/);
    const target = await dflashFolder({ ...CONFIG, architectures: [], dflash_config: undefined, num_hidden_layers: 6 });
    await runCommand(importCommand(), folder, '--out', out, '--target', target);
    expect([...(await openCheckpoint(out)).names].sort()).toEqual(Object.keys(tensors()).sort());
  });

  it('of a drafter for another target than the one that is named is refused', async () => {
    const words = [await dflashFolder(), '--out', await temporaryFolder(), '--target', join(FIXTURES, 'dflash-target')];
    await expect(runCommand(importCommand(), ...words)).rejects.toThrowError(/hidden_size is 8, the target's is 64/);
  });

  it('of a drafter that taps the last layer keeps what was said of that', async () => {
    const folder = await dflashFolder({ ...CONFIG, dflash_config: { mask_token_id: 1, target_layer_ids: [0, 3] } });
    const out = join(await temporaryFolder(), 'out');
    await runCommand(importCommand(), folder, '--out', out, '--final-tap', 'post');
    expect(readDflashConfig(out)).toEqual(readDflashConfig(folder, { finalTap: 'post' }));
  });

  it('into a folder with weights is refused', async () => {
    const folder = await dflashFolder();
    await expect(runCommand(importCommand(), folder, '--out', folder)).rejects.toThrowError(/without weights/);
  });
});
