import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { inspectCommand } from '../../../src/cli/inspect-command.ts';
import type { Inspection } from '../../../src/cli/inspect-facts.ts';
import { renderTable } from '../../../src/cli/inspect-table.ts';
import { namedTaps } from '../../../src/cli/inspect-taps.ts';
import { f32, temporaryFolder, weights } from '../checkpoint/checkpoint-fixture.ts';
import { CONFIG, dflashFolder, SPECULATORS_CONFIG, tensors } from '../drafter/dflash-fixture.ts';
import { runCommand } from './run-command.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');
const fixture = (name: string) => join(FIXTURES, name);

async function inspect(...words: readonly string[]): Promise<Inspection> {
  return JSON.parse(await runCommand(inspectCommand(), ...words, '--json'));
}

/** A folder with the config of the target that the smallest drafters are for. */
function targetFolder(): Promise<string> {
  const { num_target_layers: num_hidden_layers } = CONFIG;
  return dflashFolder({ ...CONFIG, architectures: ['Qwen3ForCausalLM'], dflash_config: undefined, num_hidden_layers });
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

  it('of a drafter with a list of the tokens that it chooses from counts them', async () => {
    const folder = await dflashFolder(CONFIG, tensors());
    expect((await inspect(folder)).shape['vocabulary']).toBe(CONFIG.vocab_size);
    await writeFile(join(folder, 'draft_tokens.json'), '[0, 2, 5]');
    expect((await inspect(folder)).shape['vocabulary']).toBe(`3 of ${CONFIG.vocab_size}`);
    await writeFile(join(folder, 'draft_tokens.json'), '[0, 0]');
    expect((await inspect(folder)).shape['vocabulary']).toMatch(/cannot be used$/);
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
    const { compatibility } = await inspect(await dflashFolder(CONFIG, tensors(3)), '--target', await targetFolder());
    expect(compatibility!.facts).toContainEqual({ name: 'width of fc (2 taps)', drafter: 24, target: 16, agrees: false });
    expect(compatibility!.problem).toMatch(/fc\.weight to take 2 layers of 8, .* got a width of 24/);
  });

  const { 'norm.weight': norm, ...normless } = tensors();
  it.each([
    { title: 'a tensor is missing', contents: normless, problem: /lacks norm\.weight/ },
    { title: 'a tensor is not used', contents: { ...tensors(), 'aux_norm.weight': norm! }, problem: /aux_norm\.weight/ },
    {
      title: 'a tensor has another shape',
      contents: { ...tensors(), 'norm.weight': f32([4], weights(4)) },
      problem: /shape \[8\] for norm\.weight, got \[4\]/,
    },
    { title: 'its list of kept tokens is unusable', contents: tensors(), kept: '[1, 1]', problem: /each token id once/ },
  ])('of a drafter says that it does not fit where $title', async ({ contents, kept, problem }) => {
    const folder = await dflashFolder(CONFIG, contents);
    if (kept !== undefined) await writeFile(join(folder, 'draft_tokens.json'), kept);
    const { compatibility } = await inspect(folder, '--target', await targetFolder());
    expect(compatibility!.facts.every(({ agrees }) => agrees)).toBe(true);
    expect(compatibility!.problem).toMatch(problem);
    expect(process.exitCode).toBe(1);
  });

  it('of a drafter with tensors that nothing uses says that it fits where that is allowed', async () => {
    const folder = await dflashFolder(CONFIG, { ...tensors(), 'aux_norm.weight': norm! });
    const { compatibility } = await inspect(folder, '--target', await targetFolder(), '--allow-unclaimed');
    expect(compatibility!.problem).toBeNull();
  });

  it('of a model as a drafter says that it does not fit where tensors of its own would not be used', async () => {
    const draft = await temporaryFolder();
    await cp(fixture('testbed/target'), draft, { recursive: true });
    const config = JSON.parse(await readFile(join(draft, 'config.json'), 'utf8')) as { num_hidden_layers: number };
    const fewer = { ...config, num_hidden_layers: config.num_hidden_layers - 1, layer_types: null };
    await writeFile(join(draft, 'config.json'), JSON.stringify(fewer));
    const { compatibility } = await inspect(draft, '--target', fixture('testbed/target'));
    expect(compatibility!.problem).toMatch(/has tensors that .* does not/);
  });

  it('of a drafter that taps the last layer names it, whatever its ids count and with no target at hand', async () => {
    const config = { ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: [1, 6] };
    for (const [final_tap, meaning] of [
      ['post', 'output of layer 5, behind the final norm'],
      ['pre', 'output of layer 5, before the final norm'],
    ]) {
      const { taps } = await inspect(await dflashFolder({ ...config, final_tap }));
      expect(taps.map((tap) => [tap.zlab, tap.meaning])).toEqual([
        [0, 'output of layer 0'],
        [5, meaning],
      ]);
    }
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
