import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPlaceOf, parseFinalTaps } from '../../../src/drafter/dflash/final-taps.ts';
import type { DrafterContext } from '../../../src/drafter/drafter-context.ts';
import { drafterFromModule, drafterFromName } from '../../../src/drafter/registry.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { CONFIG, dflashFolder, SPECULATORS_CONFIG } from './dflash-fixture.ts';

/** Drafters of plain JavaScript are made with nothing. */
const NO_CONTEXT = {} as DrafterContext;
const TARGET = join(import.meta.dirname, '../../golden/fixtures/dflash-target');

describe('a drafter by name', () => {
  it('is none at all for none', () => {
    expect(drafterFromName('none', TARGET)).toBeNull();
  });

  it('is prompt look-up for ngram', async () => {
    const source = drafterFromName('ngram', TARGET);
    expect(source).toMatchObject({ name: 'ngram', taps: [] });
    expect(await source?.load(NO_CONTEXT)).toMatchObject({ kind: 'ngram' });
  });

  it('is the folder beside the target for dflash', async () => {
    const parent = await temporaryFolder();
    const folder = join(parent, 'tiny-dflash');
    await mkdir(folder);
    await writeFile(join(folder, 'config.json'), JSON.stringify(CONFIG));
    expect(drafterFromName('dflash', join(parent, 'tiny'))).toMatchObject({ name: 'dflash', folder, taps: [0, 2] });
    expect(drafterFromName('dflash', `${join(parent, 'tiny')}/`)).toMatchObject({ name: 'dflash', folder });
  });

  it('is refused when that folder is not there, which is named', () => {
    expect(() => drafterFromName('dflash', 'no-such-target')).toThrowError(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(/no-such-target-dflash/) }),
    );
  });

  it.each(['no-such-drafter', 'toString', '__proto__'])('is refused for %s, and the names are told', (name) => {
    expect(() => drafterFromName(name, TARGET)).toThrowError(
      expect.objectContaining({
        code: 'invalid_config',
        message: expect.stringMatching(new RegExp(`none, ngram, dflash .*${name}`)),
      }),
    );
  });
});

describe('a drafter by folder', () => {
  it('is named after it, with the taps that its config asks for', async () => {
    const folder = await dflashFolder();
    expect(drafterFromName(folder, TARGET)).toMatchObject({ name: basename(folder), taps: [0, 2] });
  });

  it('is refused when it is a file', async () => {
    const file = join(await dflashFolder(), 'config.json');
    expect(() => drafterFromName(file, TARGET)).toThrowError(expect.objectContaining({ code: 'invalid_config' }));
  });

  it('is refused when it has no config that can be used', async () => {
    const empty = await temporaryFolder();
    expect(() => drafterFromName(empty, TARGET)).toThrowError(expect.objectContaining({ code: 'invalid_checkpoint' }));
    const folder = await dflashFolder({ ...CONFIG, rope_theta: undefined });
    expect(() => drafterFromName(folder, TARGET)).toThrowError(expect.objectContaining({ code: 'invalid_checkpoint' }));
  });

  it('is a model that drafts token by token where nothing declares another kind', async () => {
    const folder = await dflashFolder({ ...CONFIG, architectures: ['LlamaForCausalLM'], dflash_config: undefined });
    const source = drafterFromName(folder, TARGET);
    expect(source).toMatchObject({ name: basename(folder), taps: [] });
    const context = { target: { vocabSize: 41 } } as DrafterContext;
    await expect(source!.load(context)).rejects.toThrowError(/vocab_size is 40, the target's is 41/);
  });

  it('knows the depth of the target where the config leaves the layers to it', async () => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: null });
    expect(drafterFromName(folder, TARGET)).toMatchObject({ taps: [1, 2, 2] });
  });

  it('taps the last layer as the user says', async () => {
    const folder = await dflashFolder({ ...CONFIG, dflash_config: { mask_token_id: 1, target_layer_ids: [3] } });
    expect(() => drafterFromName(folder, TARGET)).toThrowError(/final_tap/);
    const finalTaps = parseFinalTaps(['post']);
    expect(drafterFromName(folder, TARGET, { finalTaps })).toMatchObject({ taps: [4] });
  });

  it('is named as the user says', async () => {
    const folder = await dflashFolder();
    expect(drafterFromName(folder, TARGET, { name: 'mine' })).toMatchObject({ name: 'mine', taps: [0, 2] });
    expect(drafterFromName('ngram', TARGET, { name: 'mine' })).toMatchObject({ name: 'mine' });
  });

  describe('beside others that tap the last layer', () => {
    const last = { mask_token_id: 1, target_layer_ids: [3] };
    const open = (folder: string, ...words: readonly string[]) =>
      drafterFromName(folder, TARGET, { name: 'mine', finalTaps: parseFinalTaps(words) });

    it('is not asked for a layer that it does not tap', async () => {
      expect(open(await dflashFolder(), 'pre', 'other=post')).toMatchObject({ taps: [0, 2] });
    });

    it('keeps to what its config says', async () => {
      const folder = await dflashFolder({ ...CONFIG, dflash_config: { ...last, final_tap: 'post' } });
      expect(open(folder, 'pre')).toMatchObject({ taps: [4] });
    });

    it('is as its name says where they differ', async () => {
      const folder = await dflashFolder({ ...CONFIG, dflash_config: last });
      expect(open(folder, 'pre', 'mine=post')).toMatchObject({ taps: [4] });
      expect(open(folder, 'pre', 'other=post')).toMatchObject({ taps: [3] });
    });

    it.each([
      {
        inner: { ...last, final_tap: 'post' },
        message: /final_tap "pre", as --final-tap says of it, got "post" in its config/,
      },
      { inner: CONFIG.dflash_config, message: /got a drafter that taps 0, 2 and not the last layer/ },
    ])('is refused where its name and its config differ', async ({ inner, message }) => {
      const folder = await dflashFolder({ ...CONFIG, dflash_config: inner });
      expect(() => open(folder, 'mine=pre')).toThrowError(
        expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) }),
      );
    });

    it('may be replaced by one that does not tap it', async () => {
      const finalTaps = inPlaceOf('mine', parseFinalTaps(['mine=post']));
      expect(drafterFromName(await dflashFolder(), TARGET, { finalTaps })).toMatchObject({ taps: [0, 2] });
      const other = await dflashFolder({ ...CONFIG, dflash_config: last });
      expect(drafterFromName(other, TARGET, { finalTaps })).toMatchObject({ taps: [4] });
    });
  });

  it.each([['both'], ['mine=both'], ['a/b=pre'], ['pre', 'post'], ['mine=pre', 'mine=post']])(
    'is not told which output of the last layer by %s %s',
    (...words) => {
      expect(() => parseFinalTaps(words.filter((word) => word !== undefined))).toThrowError(
        expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(/--final-tap/) }),
      );
    },
  );
});

describe('a drafter by module', () => {
  async function moduleOf(code: string): Promise<string> {
    const file = join(await temporaryFolder(), 'my-drafter.mjs');
    await writeFile(file, code);
    return file;
  }

  it('is what its createDrafter makes, with the taps that it exports', async () => {
    const path = await moduleOf(
      "export const taps = [1, 3]; export const createDrafter = async (context) => ({ kind: 'mine', context });",
    );
    const source = await drafterFromModule(path);
    expect(source).toMatchObject({ name: 'my-drafter', taps: [1, 3] });
    expect(await source.load(NO_CONTEXT)).toEqual({ kind: 'mine', context: NO_CONTEXT });
  });

  it.each([
    { title: 'does not parse', code: 'export const = 1', message: /Cannot load/ },
    { title: 'throws', code: "throw new Error('no luck');", message: /Cannot load .*no luck/ },
    { title: 'throws what is no error', code: "throw 'no luck';", message: /Cannot load .*no luck/ },
    { title: 'exports something else', code: 'export const makeDrafter = 1;', message: /createDrafter, got makeDrafter/ },
    { title: 'exports nothing', code: '', message: /createDrafter, got nothing/ },
    {
      title: 'exports a drafter instead of a function',
      code: 'export const createDrafter = {};',
      message: /function createDrafter/,
    },
    {
      title: 'exports taps that are no list',
      code: 'export const taps = 3; export const createDrafter = () => {};',
      message: /taps .*got 3/,
    },
    {
      title: 'exports taps that are no layers',
      code: 'export const taps = [-2]; export const createDrafter = () => {};',
      message: /taps .*\[-2\]/,
    },
  ])('is refused when it $title', async ({ code, message }) => {
    await expect(drafterFromModule(await moduleOf(code))).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(message),
    });
  });

  it('is refused when there is no such file', async () => {
    await expect(drafterFromModule('no-such-module.ts')).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/no-such-module\.ts/),
    });
  });
});
