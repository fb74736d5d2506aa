import { mkdir, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { type FixtureTensor, f32, modelFolder, safetensors, temporaryFolder, weights } from './checkpoint-fixture.ts';
import { expectAppError } from './expect-app-error.ts';

const ONE = f32([1], Float32Array.of(1));

/** A folder with the given files and an index. */
async function shardedFolder(
  shards: Readonly<Record<string, Readonly<Record<string, FixtureTensor>>>>,
  weightMap: unknown,
): Promise<string> {
  const folder = await temporaryFolder();
  for (const [file, tensors] of Object.entries(shards)) await writeFile(join(folder, file), safetensors(tensors));
  await writeFile(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: weightMap }));
  return folder;
}

describe('openCheckpoint', () => {
  it('opens a single file', async () => {
    const folder = await modelFolder({ a: f32([2, 3], weights(6)), b: ONE }, { format: 'pt' });
    const checkpoint = await openCheckpoint(folder);
    expect(checkpoint.names).toEqual(['a', 'b']);
    expect(checkpoint.has('a')).toBe(true);
    expect(checkpoint.has('c')).toBe(false);
    expect(checkpoint.tensor('a')).toMatchObject({ type: 'plain', name: 'a', dtype: 'F32', shape: [2, 3], byteLength: 24 });
  });

  it('opens shards through their index', async () => {
    const folder = await shardedFolder(
      { 'x-1.safetensors': { a: ONE, c: ONE }, 'x-2.safetensors': { b: f32([1], Float32Array.of(5)) } },
      { a: 'x-1.safetensors', b: 'x-2.safetensors', c: 'x-1.safetensors' },
    );
    const checkpoint = await openCheckpoint(folder);
    expect([...checkpoint.names].sort()).toEqual(['a', 'b', 'c']);
    expect(await checkpoint.readRows('b', 0, 1)).toEqual(Float32Array.of(5));
  });

  it('opens a single file that an index names', async () => {
    const folder = await shardedFolder({ 'model.safetensors': { a: ONE } }, { a: 'model.safetensors' });
    expect((await openCheckpoint(folder)).names).toEqual(['a']);
  });

  it('refuses a single file beside shards of something else', async () => {
    const folder = await shardedFolder(
      { 'model.safetensors': { a: ONE }, 'x-1.safetensors': { a: ONE } },
      { a: 'x-1.safetensors' },
    );
    await expectAppError(openCheckpoint(folder), 'invalid_checkpoint', /weights of one model .* got model\.safetensors and /);
  });

  it('follows symbolic links, as the Hugging Face cache has them, and names the real file', async () => {
    const folder = await modelFolder({ a: ONE });
    const snapshot = join(await temporaryFolder(), 'snapshot');
    await mkdir(snapshot);
    await rename(join(folder, 'model.safetensors'), join(folder, 'blob'));
    await symlink(join(folder, 'blob'), join(snapshot, 'model.safetensors'));
    const checkpoint = await openCheckpoint(snapshot);
    expect(checkpoint.tensor('a')).toMatchObject({ file: join(folder, 'blob') });
    expect(await checkpoint.readRows('a', 0, 1)).toEqual(Float32Array.of(1));
  });

  it.each<[string, Readonly<Record<string, string>>, RegExp]>([
    [
      'a folder with pickled weights only',
      { 'pytorch_model.bin': '', 'config.json': '{}' },
      /expected model\.safetensors or .* got the pickle file pytorch_model\.bin; convert it/,
    ],
    ['a folder with a GGUF file only', { 'm.gguf': '' }, /got m\.gguf; convert it/],
    [
      'shards without an index',
      { 'model-00001-of-00002.safetensors': '' },
      /got model-00001-of-00002\.safetensors without an index/,
    ],
    ['an empty folder', {}, /got an empty folder; fetch the weights/],
    ['a folder with other files', { 'config.json': '{}' }, /got no weights; fetch them/],
    [
      'an index that is not JSON',
      { 'model.safetensors.index.json': '<html>' },
      /expected a JSON object with weight_map .* got something else/,
    ],
    ['an index without a map', { 'model.safetensors.index.json': '{"weights":{}}' }, /expected a JSON object with weight_map/],
  ])('refuses %s', async (_, files, pattern) => {
    const folder = await temporaryFolder();
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    await expectAppError(openCheckpoint(folder), 'invalid_checkpoint', pattern);
  });

  it('refuses a folder that does not exist', async () => {
    await expectAppError(
      openCheckpoint('/nowhere/at/all'),
      'invalid_checkpoint',
      /got \/nowhere\/at\/all, which cannot be listed \(ENOENT\); check the path/,
    );
  });

  it.each(['../x.safetensors', '/etc/passwd', 'a/../../x', '..\\x', '.', 'x\0'])(
    'refuses the file %j in an index',
    async (file) => {
      const folder = await shardedFolder({}, { a: file });
      await expectAppError(
        openCheckpoint(folder),
        'invalid_checkpoint',
        /expected files inside the model folder .* for a; do not use this index/,
      );
    },
  );

  it('names a missing shard', async () => {
    const folder = await shardedFolder({ 'x-1.safetensors': { a: ONE } }, { a: 'x-1.safetensors', b: 'x-2.safetensors' });
    await expectAppError(
      openCheckpoint(folder),
      'invalid_checkpoint',
      /weights in .*x-2\.safetensors, got a file that cannot be read \(ENOENT\)/,
    );
  });

  it('refuses a tensor that the index has and the shard has not', async () => {
    const folder = await shardedFolder({ 'x-1.safetensors': { a: ONE } }, { a: 'x-1.safetensors', b: 'x-1.safetensors' });
    await expectAppError(
      openCheckpoint(folder),
      'invalid_checkpoint',
      /expected tensor b in x-1\.safetensors, as .* says, got a file without it/,
    );
  });

  it('refuses a tensor that a shard has and the index has not', async () => {
    const folder = await shardedFolder({ 'x-1.safetensors': { a: ONE, b: ONE } }, { a: 'x-1.safetensors' });
    await expectAppError(openCheckpoint(folder), 'invalid_checkpoint', /to place tensor b in x-1\.safetensors, got nothing/);
  });

  it('refuses a tensor that two shards have', async () => {
    const folder = await shardedFolder(
      { 'x-1.safetensors': { a: ONE }, 'x-2.safetensors': { a: ONE, b: ONE } },
      { a: 'x-1.safetensors', b: 'x-2.safetensors' },
    );
    await expectAppError(
      openCheckpoint(folder),
      'invalid_checkpoint',
      /to place tensor a in x-2\.safetensors, got x-1\.safetensors/,
    );
  });

  it('names a tensor that is absent', async () => {
    const checkpoint = await openCheckpoint(await modelFolder({ a: ONE }));
    await expectAppError(
      checkpoint.readRows('lm_head.weight', 0, 1),
      'invalid_checkpoint',
      /expected tensor lm_head\.weight in .* got 1 others/,
    );
  });
});

describe('readRows', () => {
  const values = Float32Array.of(1, -2, 0.5, 65504, -0.25, 3, 2 ** -14, 0, -1);

  it.each([
    ['F32', values],
    ['F16', Uint16Array.of(0x3c00, 0xc000, 0x3800, 0x7bff, 0xb400, 0x4200, 0x0400, 0, 0xbc00)],
  ])('converts %s, whole and in part, at any alignment', async (dtype, data) => {
    for (const shift of [0, 1]) {
      const checkpoint = await openCheckpoint(await modelFolder({ a: { dtype, shape: [3, 3], data } }, undefined, shift));
      expect(await checkpoint.readRows('a', 0, 3)).toEqual(values);
      expect(await checkpoint.readRows('a', 1, 2)).toEqual(values.subarray(3, 6));
      expect(await checkpoint.readRows('a', 2, 2)).toEqual(new Float32Array());
    }
  });

  it('converts BF16', async () => {
    const data = Uint16Array.of(0x3f80, 0xc000, 0x3f00, 0x4049);
    const checkpoint = await openCheckpoint(await modelFolder({ a: { dtype: 'BF16', shape: [2, 2], data } }));
    expect(await checkpoint.readRows('a', 1, 2)).toEqual(Float32Array.of(0.5, 3.140625));
  });

  it('sees a vector as rows of one value, a scalar as one row and more dimensions as long rows', async () => {
    const checkpoint = await openCheckpoint(
      await modelFolder({ v: f32([9], values), s: f32([], Float32Array.of(4)), t: f32([2, 2, 2], values.slice(0, 8)) }),
    );
    expect(await checkpoint.readRows('v', 2, 4)).toEqual(Float32Array.of(0.5, 65504));
    expect(await checkpoint.readRows('s', 0, 1)).toEqual(Float32Array.of(4));
    expect(await checkpoint.readRows('t', 1, 2)).toEqual(values.slice(4, 8));
  });

  it('writes to the beginning of a given array', async () => {
    const checkpoint = await openCheckpoint(await modelFolder({ a: f32([3, 3], values) }));
    const target = new Float32Array(5).fill(7);
    await checkpoint.readRowsInto('a', 1, 2, target);
    expect(target).toEqual(Float32Array.of(65504, -0.25, 3, 7, 7));
  });

  it('refuses values that are no floats', async () => {
    const checkpoint = await openCheckpoint(await modelFolder({ a: { dtype: 'I64', shape: [1], data: new BigInt64Array(1) } }));
    await expectAppError(
      checkpoint.readRows('a', 0, 1),
      'invalid_checkpoint',
      /expected F32, F16 or BF16 values in tensor a, got I64/,
    );
  });

  it.each([
    [-1, 2],
    [2, 1],
    [0, 4],
    [Number.NaN, 1],
  ])('refuses rows %d to %d of 3', async (start, end) => {
    const checkpoint = await openCheckpoint(await modelFolder({ a: f32([3, 3], values) }));
    await expectAppError(checkpoint.readRows('a', start, end), 'internal', /expected rows within \[0, 3\) of a, got/);
  });

  it('says so when the file got shorter or went away after it was opened', async () => {
    const folder = await modelFolder({ a: f32([3, 3], values) });
    const checkpoint = await openCheckpoint(folder);
    await truncate(join(folder, 'model.safetensors'), 90);
    await expectAppError(
      checkpoint.readRows('a', 0, 3),
      'invalid_checkpoint',
      /expected 36 bytes at offset \d+ of .* got \d+ before its end/,
    );
    await rename(join(folder, 'model.safetensors'), join(folder, 'gone'));
    await expectAppError(checkpoint.readRows('a', 0, 3), 'invalid_checkpoint', /expected to read weights from .* got ENOENT/);
  });
});

describe('quantised pairs', () => {
  const quantized = Uint8Array.from({ length: 64 }, (_, i) => 100 + i);
  const pair = {
    'w.q': { dtype: 'U8', shape: [2, 1, 32], data: quantized },
    'w.scale': f32([2, 1], Float32Array.of(0.5, 2)),
  };

  it('are one tensor of the shape that the metadata tells', async () => {
    const folder = await modelFolder(pair, { format: 'blockdraft', shapes: '{"w":[2,30]}' });
    const checkpoint = await openCheckpoint(folder);
    expect(checkpoint.names).toEqual(['w']);
    expect(checkpoint.has('w.q')).toBe(false);
    expect(checkpoint.tensor('w')).toMatchObject({ type: 'quantized', name: 'w', shape: [2, 30], bits: 8, block: 32 });
    const rows = await checkpoint.readRows('w', 1, 2);
    expect(rows).toEqual(Float32Array.from({ length: 30 }, (_, i) => (132 + i - 128) * 2));
  });

  it('are two tensors in files of another format', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(pair, { format: 'pt', shapes: '{"w":[2,30]}' }));
    expect(checkpoint.names).toEqual(['w.q', 'w.scale']);
  });

  it.each<[string, Readonly<Record<string, FixtureTensor>>, string, RegExp]>([
    [
      'a missing scale',
      { 'w.q': pair['w.q'] },
      '{"w":[2,30]}',
      /expected w\.q and w\.scale for \[2, 30\] .* got U8 \[2, 1, 32\] and nothing/,
    ],
    ['another shape', pair, '{"w":[2,33]}', /for \[2, 33\] in blocks of 32/],
    [
      'scales of another type',
      { ...pair, 'w.scale': { dtype: 'F16', shape: [2, 1], data: new Uint16Array(2) } },
      '{"w":[2,30]}',
      /and F16 \[2, 1\]/,
    ],
    ['shapes that are no JSON', pair, '{', /expected JSON of tensor name to \[rows, columns\] as metadata shapes/],
    ['shapes of one dimension', pair, '{"w":[2]}', /expected JSON of tensor name/],
  ])('are refused with %s', async (_, tensors, shapes, pattern) => {
    const folder = await modelFolder(tensors, { format: 'blockdraft', shapes });
    await expectAppError(openCheckpoint(folder), 'invalid_checkpoint', pattern);
  });
});
