/** What people bring by mistake, and what would harm: each is answered in one sentence, before anything is computed. */
import { copyFile, cp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prepareWeights } from '../../../src/checkpoint/prepare-weights.ts';
import { importCommand } from '../../../src/cli/import-command.ts';
import { inspectFolder } from '../../../src/cli/inspect-facts.ts';
import { type DecoderFolder, openFolder } from '../../../src/cli/inspect-folder.ts';
import type { ErrorCode } from '../../../src/core/app-error.ts';
import type { DrafterContext } from '../../../src/drafter/drafter-context.ts';
import { drafterFromName } from '../../../src/drafter/registry.ts';
import { readModelConfig } from '../../../src/target/hf-config.ts';
import { type FixtureTensor, f32, temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { expectAppError } from '../checkpoint/expect-app-error.ts';
import { CONFIG, dflashFolder, HIDDEN, tensors } from '../drafter/dflash-fixture.ts';
import { runCommand } from './run-command.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');
const WEIGHTS = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';

/** What every command and the server do first. */
async function read(folder: string): Promise<void> {
  const { checkpoint, plan } = await openFolder(folder);
  await prepareWeights({ checkpoint, plan, format: 'int8', outDir: await temporaryFolder() });
}

/** A copy of a target that works. */
async function targetFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await cp(join(FIXTURES, 'dflash-target'), folder, { recursive: true });
  return folder;
}

function bf16([...values]: Iterable<number>, shape: readonly number[]): FixtureTensor {
  const bits = new Uint32Array(Float32Array.from(values).buffer);
  return { dtype: 'BF16', shape, data: Uint16Array.from(bits, (value) => value >>> 16) };
}

function withNaN(shape: readonly number[], at: number): FixtureTensor {
  const values = new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(0.5);
  values[at] = Number.NaN;
  return f32(shape, values);
}

async function editConfig(folder: string, edit: (config: Record<string, unknown>) => void): Promise<void> {
  const file = join(folder, 'config.json');
  const config = JSON.parse(await readFile(file, 'utf8'));
  edit(config);
  await writeFile(file, JSON.stringify(config));
}

/** Writes the eight bytes that say how long the header is. */
async function claimHeaderLength(folder: string, length: bigint): Promise<void> {
  const file = join(folder, WEIGHTS);
  const bytes = await readFile(file);
  bytes.writeBigUInt64LE(length);
  await writeFile(file, bytes);
}

async function indexed(folder: string, place: (name: string) => string): Promise<void> {
  const names = (await openFolder(folder)).checkpoint.names;
  await rm(join(folder, WEIGHTS));
  const weightMap = Object.fromEntries(names.map((name) => [name, place(name)]));
  await writeFile(join(folder, INDEX), JSON.stringify({ weight_map: weightMap }));
}

interface BadFolder {
  readonly title: string;
  readonly make: () => Promise<string>;
  readonly code?: ErrorCode;
  readonly message: RegExp;
}

/** A target that is damaged by `damage`. */
function damaged(title: string, damage: (folder: string) => Promise<unknown>, message: RegExp): BadFolder {
  return {
    title,
    message,
    async make() {
      const folder = await targetFolder();
      await damage(folder);
      return folder;
    },
  };
}

const BAD_FOLDERS: readonly BadFolder[] = [
  damaged(
    'truncated weights',
    (folder) => truncate(join(folder, WEIGHTS), 100_000),
    /bytes, as its header says, in .*model\.safetensors, got 100000/,
  ),
  damaged('weights of no bytes', (folder) => truncate(join(folder, WEIGHTS), 0), /at least 8 bytes in .*got 0/),
  damaged(
    'a header that claims more bytes than there are',
    (folder) => claimHeaderLength(folder, 50_000_000n),
    /ends inside it/,
  ),
  damaged(
    'a header that claims more memory than there is',
    (folder) => claimHeaderLength(folder, 2n ** 63n - 1n),
    /header of at most 100000000 bytes .*got a length of 9223372036854775807/,
  ),
  damaged(
    'an index that leads out of the folder',
    (folder) => indexed(folder, () => '../../etc/shadow.safetensors'),
    /files inside the model folder .*shadow/,
  ),
  damaged(
    'a missing shard',
    (folder) => indexed(folder, () => 'model-00001-of-00002.safetensors'),
    /model-00001-of-00002.*ENOENT/,
  ),
  damaged(
    'an index that is no JSON',
    (folder) => indexed(folder, () => '').then(() => writeFile(join(folder, INDEX), '<html>')),
    /weight_map/,
  ),
  damaged(
    'a config without a rotary base',
    (folder) => editConfig(folder, (config) => delete config['rope_theta']),
    /no rope_theta/,
  ),
  damaged(
    'a config of another model',
    (folder) => editConfig(folder, (config) => (config['hidden_size'] = 32)),
    /shape \[272, 32\] for .*got \[272, 64\]/,
  ),
  damaged(
    'a config of an unknown family',
    (folder) => editConfig(folder, (config) => (config['model_type'] = 'mamba')),
    /model_type mamba is not supported/,
  ),
  damaged(
    'a config that is no JSON',
    (folder) => writeFile(join(folder, 'config.json'), '<!DOCTYPE html>'),
    /Expected JSON in .*config\.json/,
  ),
  damaged('a config that is missing', (folder) => rm(join(folder, 'config.json')), /Cannot read .*config\.json/),
  damaged(
    'a pickle file',
    async (folder) => {
      await rm(join(folder, WEIGHTS));
      await writeFile(join(folder, 'pytorch_model.bin'), 'x');
    },
    /got the pickle file pytorch_model\.bin/,
  ),
  { title: 'an empty folder', make: temporaryFolder, message: /Cannot read .*config\.json/ },
  {
    title: 'a folder that is not there',
    make: async () => join(await temporaryFolder(), 'nowhere'),
    message: /Cannot read .*nowhere/,
  },
  {
    title: 'a NaN in a norm that is used as it lies',
    make: () => dflashFolder(CONFIG, { ...tensors(), 'norm.weight': withNaN([HIDDEN], 5) }),
    message: /finite values in norm\.weight, got a NaN or an infinity in row 5/,
  },
  {
    title: 'a NaN in a norm of another type',
    make: () => dflashFolder(CONFIG, { ...tensors(), 'norm.weight': bf16([1, 1, Number.NaN, 1, 1, 1, 1, 1], [HIDDEN]) }),
    message: /finite values in norm\.weight, got a NaN or an infinity in row 2/,
  },
  {
    title: 'an infinity in a matrix',
    make: () =>
      dflashFolder(CONFIG, {
        ...tensors(),
        'layers.0.mlp.down_proj.weight': f32([HIDDEN, 16], new Float32Array(HIDDEN * 16).fill(Number.POSITIVE_INFINITY)),
      }),
    message: /finite values in layers\.0\.mlp\.down_proj\.weight, got a NaN or an infinity in row 0/,
  },
  {
    title: 'a matrix of integers among floats',
    make: () =>
      dflashFolder(CONFIG, {
        ...tensors(),
        'fc.weight': { dtype: 'I8', shape: [HIDDEN, 2 * HIDDEN], data: new Int8Array(16 * HIDDEN) },
      }),
    message: /F32, F16 or BF16 values in tensor fc\.weight, got I8/,
  },
  {
    title: 'a matrix of another shape',
    make: () => dflashFolder(CONFIG, tensors(3)),
    message: /shape \[8, 16\] for fc\.weight, got \[8, 24\]/,
  },
];

describe('a model folder with', () => {
  it.each(BAD_FOLDERS)('$title is refused', async ({ make, code = 'invalid_checkpoint', message }) => {
    await expectAppError(make().then(read), code, message);
  });

  it('tensors of several float types is read as they are', async () => {
    const folder = await dflashFolder(CONFIG, {
      ...tensors(),
      'hidden_norm.weight': bf16(new Float32Array(HIDDEN).fill(1.5), [HIDDEN]),
      'norm.weight': { dtype: 'F16', shape: [HIDDEN], data: new Uint16Array(HIDDEN).fill(0x3e00) },
    });
    await read(folder);
    const { checkpoint } = await openFolder(folder);
    for (const name of ['hidden_norm.weight', 'norm.weight']) {
      expect([...(await checkpoint.readRows(name, 0, HIDDEN))]).toEqual(new Array(HIDDEN).fill(1.5));
    }
  });

  it('damage is not imported either, and leaves no model behind', async () => {
    const out = join(await temporaryFolder(), 'out');
    const folder = await dflashFolder(CONFIG, { ...tensors(), 'norm.weight': withNaN([HIDDEN], 5) });
    await expectAppError(
      runCommand(importCommand(), folder, '--out', out),
      'invalid_checkpoint',
      /finite values in norm\.weight/,
    );
    await expectAppError(openFolder(out), 'invalid_checkpoint', /Cannot read/);
  });
});

describe('a pair that does not belong together', () => {
  it.each(['dflash-trained', 'speculators-full'])(
    'is told when the drafter stands in the place of its target: %s',
    (drafter) => {
      expect(() => readModelConfig(join(FIXTURES, drafter))).toThrow(
        /expected the config of a model, got that of a drafter, \w+;/,
      );
    },
  );

  it('is named with both numbers when the drafter is for another target', async () => {
    const target = (await openFolder(join(FIXTURES, 'testbed/target'))) as DecoderFolder;
    const drafter = await openFolder(join(FIXTURES, 'dflash-trained'), { targetLayers: target.config.spec.layers.length });
    const { compatibility } = await inspectFolder(drafter, target);
    expect(compatibility!.problem).toMatch(/hidden_size is 64, the target's is 128$/);
  });

  it('is named with both tokens when the tokenizers differ', async () => {
    const target = join(FIXTURES, 'testbed/target');
    const folder = await temporaryFolder();
    for (const file of ['config.json', WEIGHTS]) await copyFile(join(target, file), join(folder, file));
    const tokenizer = JSON.parse(await readFile(join(target, 'tokenizer.json'), 'utf8'));
    tokenizer.added_tokens[0].content = '<|other|>';
    await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
    const context = { target: { vocabSize: 1024, checkpoint: { folder: target } } } as unknown as DrafterContext;
    await expectAppError(
      drafterFromName(folder, target)!.load(context),
      'incompatible_drafter',
      /token 1020 of its tokenizer is "<\|other\|>", of the target's "<\|endoftext\|>"/,
    );
  });

  it('is refused without a tokenizer to compare', async () => {
    const context = {
      target: { vocabSize: 272, checkpoint: { folder: join(FIXTURES, 'dflash-target') } },
    } as unknown as DrafterContext;
    const source = drafterFromName(join(FIXTURES, 'llama-tied'), join(FIXTURES, 'dflash-target'));
    await expectAppError(source!.load(context), 'invalid_checkpoint', /Cannot read .*tokenizer\.json/);
  });
});
