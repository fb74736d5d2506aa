import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { inspectCommand } from '../../../src/cli/inspect-command.ts';
import type { Inspection } from '../../../src/cli/inspect-facts.ts';
import { renderTable } from '../../../src/cli/inspect-table.ts';
import { namedTaps } from '../../../src/cli/inspect-taps.ts';
import { CONFIG, dflashFolder, tensors } from '../drafter/dflash-fixture.ts';
import { runCommand } from './run-command.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');
const fixture = (name: string) => join(FIXTURES, name);

async function inspect(...words: readonly string[]): Promise<Inspection> {
  return JSON.parse(await runCommand(inspectCommand(), ...words, '--json'));
}

afterEach(() => {
  process.exitCode = 0;
});

describe('an inspection', () => {
  it('of a model counts what its checkpoint holds', async () => {
    expect(await inspect(fixture('dflash-target'))).toMatchObject({
      role: 'target',
      format: 'qwen3',
      tensors: { claimed: 69, missing: [], unclaimed: [], misshapen: [], dtypes: { F32: 69 } },
      // Two tables of 272 x 64; six layers of 96 x 64, two of 32 x 64, 64 x 96, three of 128 x 64, and norms of 64, 64, 16, 16; a norm of 64.
      parameters: 2 * 272 * 64 + 6 * (2 * 96 * 64 + 2 * 32 * 64 + 3 * 128 * 64 + 160) + 64,
      cacheBytesPerPosition: { f32: 1536, bf16: 768, f16: 768, int8: 1536, int4: 1536 },
      cacheBytesPerSequence: 0,
      taps: [],
      compatibility: null,
    });
  });

  it('says what a position takes in each format', async () => {
    const text = await runCommand(inspectCommand(), fixture('dflash-target'));
    expect(text).toContain('f32, int8, int4 1.54 kB · bf16, f16 768 B per position\n');
  });

  it('of a hybrid of a wrapper leaves its image part alone, and has states of fixed size', async () => {
    const { tensors, cacheBytesPerPosition, cacheBytesPerSequence, shape } = await inspect(fixture('qwen3_5-nested'));
    expect(tensors.missing).toEqual([]);
    expect(tensors.unclaimed).toHaveLength(23);
    for (const name of tensors.unclaimed) expect(name).toMatch(/^(model\.visual|mtp)\./);
    expect(shape['layers']).toBe('8 (2 with attention)');
    expect(cacheBytesPerPosition.f32).toBe(2 * 2 * 2 * 32 * 4);
    expect(cacheBytesPerSequence).toBeGreaterThan(0);
  });

  it('of a drafter compares each fact with its target', async () => {
    const { compatibility, taps, memory } = await inspect(fixture('speculators-reduced'), '--target', fixture('dflash-target'));
    expect(compatibility).toMatchObject({ problem: null });
    expect(compatibility!.facts.every(({ agrees }) => agrees)).toBe(true);
    expect(taps.map(({ zlab, huggingFace, speculators }) => [zlab, huggingFace, speculators])).toEqual([
      [0, 1, 1],
      [1, 2, 2],
      [2, 3, 3],
      [3, 4, 4],
      [4, 5, 5],
    ]);
    expect(memory.f32).toBeGreaterThan(memory.int8);
    expect(memory.int8).toBeGreaterThan(memory.int4);
    expect(process.exitCode).not.toBe(1);
  });

  it('of a drafter for another target says so with both numbers, and fails', async () => {
    const { compatibility } = await inspect(fixture('dflash-trained'), '--target', fixture('testbed/target'));
    expect(compatibility!.facts).toContainEqual({ name: 'hidden_size', drafter: 64, target: 128, agrees: false });
    expect(compatibility!.problem).toMatch(/hidden_size is 64, the target's is 128/);
    expect(process.exitCode).toBe(1);
  });

  it('of a model as a drafter compares the tokens', async () => {
    const testbed = fixture('testbed/target');
    expect((await inspect(testbed, '--target', testbed)).compatibility!.problem).toBeNull();
    const other = await inspect(fixture('dflash-target'), '--target', testbed);
    expect(other.compatibility!.facts).toContainEqual({ name: 'vocab_size', drafter: 272, target: 1024, agrees: false });
    expect(other.compatibility!.problem).not.toBeNull();
  });

  it('lists tensors that are missing, not used or of another shape', async () => {
    const { 'hidden_norm.weight': _, ...rest } = tensors(3);
    const folder = await dflashFolder(CONFIG, { ...rest, 'aux_norm.weight': tensors()['norm.weight']! });
    expect((await inspect(folder)).tensors).toMatchObject({
      missing: ['hidden_norm.weight'],
      unclaimed: ['aux_norm.weight'],
      misshapen: ['fc.weight is [8, 24], expected [8, 16]'],
    });
  });

  it('of a drafter whose fusion takes more taps than it lists says so with both widths', async () => {
    const { hidden_size, num_target_layers, vocab_size } = CONFIG;
    const target = {
      ...CONFIG,
      architectures: ['Qwen3ForCausalLM'],
      dflash_config: undefined,
      hidden_size,
      vocab_size,
      num_hidden_layers: num_target_layers,
    };
    const folders = [await dflashFolder(CONFIG, tensors(3)), '--target', await dflashFolder(target)];
    const { compatibility } = await inspect(...folders);
    expect(compatibility!.problem).toBe("its width of fc (2 taps) is 24, the target's is 16");
  });

  it('is refused with a drafter as the target', async () => {
    const words = [fixture('dflash-trained'), '--target', fixture('dflash-trained')];
    await expect(inspect(...words)).rejects.toThrowError(/Expected a model as the target/);
  });

  it('reads as tables', async () => {
    const text = await runCommand(inspectCommand(), fixture('speculators-full'), '--target', fixture('dflash-target'));
    expect(text).toMatch(/^drafter {5}speculators-full · DFlash, speculators layout$/m);
    expect(text).toMatch(/^0 {9}1 {17}1 {8}output of layer 0$/m);
    expect(text).toMatch(/^vocab_size .* 272 .* 272 .* yes$/m);
    expect(text).toMatch(/^It fits .*dflash-target\.$/m);
    expect(text).not.toMatch(/undefined|NaN|\[object/);
  });
});

describe('taps by their names', () => {
  it.each([
    { tap: -1, layers: 6, names: [-1, 0, 0], meaning: 'embedding' },
    { tap: 2, layers: 6, names: [2, 3, 3], meaning: 'output of layer 2' },
    { tap: 5, layers: 6, names: [5, null, 6], meaning: 'output of layer 5, before the final norm' },
    { tap: 6, layers: 6, names: [5, 6, null], meaning: 'output of layer 5, behind the final norm' },
    { tap: 5, layers: null, names: [5, 6, 6], meaning: 'output of layer 5' },
  ])('tap $tap of $layers layers is $meaning', ({ tap, layers, names, meaning }) => {
    const [named] = namedTaps([tap], layers);
    expect([named!.zlab, named!.huggingFace, named!.speculators]).toEqual(names);
    expect(named!.meaning).toBe(meaning);
  });
});

describe('a table', () => {
  it('has columns as wide as their cells', () => {
    expect(renderTable([['a', 'bcd', 'e']], ['ff', 'g', 'h'])).toBe('ff  g    h\n──  ───  ─\na   bcd  e');
    expect(
      renderTable([
        ['a', ''],
        ['bb', 'c'],
      ]),
    ).toBe('a\nbb  c');
  });
});
