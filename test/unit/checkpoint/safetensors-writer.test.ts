import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSafetensorsHeader } from '../../../src/checkpoint/safetensors.ts';
import { readSealedHeader } from '../../../src/checkpoint/safetensors-seal.ts';
import { writeSafetensors } from '../../../src/checkpoint/safetensors-writer.ts';
import type { TensorSpec } from '../../../src/checkpoint/tensor-location.ts';
import { temporaryFolder } from './checkpoint-fixture.ts';
import { expectAppError } from './expect-app-error.ts';

const TENSORS: readonly TensorSpec[] = [
  { name: 'odd', dtype: 'U8', shape: [5] },
  { name: 'large', dtype: 'U8', shape: [3, 5000] },
  { name: '7', dtype: 'F32', shape: [1] },
];

async function write(file: string, sealed = false): Promise<void> {
  await writeSafetensors(file, { metadata: { note: 'x' }, tensors: TENSORS, sealed }, async (sink) => {
    await sink('large', new Uint8Array(9000).fill(1));
    await sink('odd', Uint8Array.of(1, 2, 3, 4, 5));
    await sink('large', new Uint8Array(6000).fill(2));
    await sink('7', new Uint8Array(4).fill(9));
  });
}

describe('writeSafetensors', () => {
  it('writes each tensor at a multiple of 64 bytes and leaves no hole, as the format demands', async () => {
    const file = join(await temporaryFolder(), 'a.safetensors');
    await write(file);
    const bytes = await readFile(file);
    const { tensors, metadata } = await readSafetensorsHeader(file);
    expect(metadata).toEqual({ note: 'x' });
    expect([...tensors.keys()].sort()).toEqual(['7', 'large', 'odd']);
    for (const tensor of tensors.values()) expect(tensor.offset % 64).toBe(0);
    const large = tensors.get('large')!;
    expect(bytes.subarray(large.offset + 8999, large.offset + 9001)).toEqual(Buffer.from([1, 2]));
    expect(bytes.subarray(tensors.get('odd')!.offset, tensors.get('odd')!.offset + 5)).toEqual(Buffer.from([1, 2, 3, 4, 5]));

    const headerLength = Number(bytes.readBigUInt64LE(0));
    const { __metadata__: _, ...entries } = JSON.parse(bytes.toString('utf8', 8, 8 + headerLength));
    const spans = Object.values(entries as Record<string, { data_offsets: [number, number] }>).map((item) => item.data_offsets);
    spans.sort((a, b) => a[0] - b[0]);
    for (const [i, [begin]] of spans.entries()) expect(begin).toBe(spans[i - 1]?.[1] ?? 0);
    expect(bytes.length).toBe(8 + headerLength + spans.at(-1)![1]);
  });

  it('leaves an older file as it was and no temporary one when the values cannot be made', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'a.safetensors');
    await writeFile(file, 'older');
    const failing = writeSafetensors(file, { metadata: {}, tensors: TENSORS }, async (sink) => {
      await sink('odd', new Uint8Array(5));
      throw new Error('no more');
    });
    await expect(failing).rejects.toThrow('no more');
    expect(await readdir(folder)).toEqual(['a.safetensors']);
    expect(await readFile(file, 'utf8')).toBe('older');
  });

  it.each<[string, string, number, RegExp]>([
    ['too few bytes', 'odd', 4, /expected 5 bytes of odd, got 4/],
    ['too many bytes', 'odd', 6, /expected 5 bytes of odd, got 6/],
    ['an unknown tensor', 'other', 1, /expected bytes of a planned tensor, got 1 of other/],
  ])('refuses %s', async (_, name, count, pattern) => {
    const file = join(await temporaryFolder(), 'a.safetensors');
    const plan = { metadata: {}, tensors: TENSORS.slice(0, 1) };
    await expectAppError(
      writeSafetensors(file, plan, (sink) => sink(name, new Uint8Array(count))),
      'internal',
      pattern,
    );
  });

  it('refuses a tensor that is planned twice', async () => {
    const plan = { metadata: {}, tensors: [TENSORS[0]!, TENSORS[0]!] };
    const file = join(await temporaryFolder(), 'a.safetensors');
    await expectAppError(
      writeSafetensors(file, plan, async () => undefined),
      'internal',
      /each tensor once/,
    );
  });

  it('removes what a crash left long ago, and not what another process writes now', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, '.a.safetensors.1.abc.tmp'), 'left');
    await utimes(join(folder, '.a.safetensors.1.abc.tmp'), 1000, 1000);
    await writeFile(join(folder, '.a.safetensors.2.abc.tmp'), 'live');
    await write(join(folder, 'a.safetensors'));
    expect((await readdir(folder)).sort()).toEqual(['.a.safetensors.2.abc.tmp', 'a.safetensors']);
  });
});

describe('the seal', () => {
  it('holds for a file as it was written', async () => {
    const file = join(await temporaryFolder(), 'a.safetensors');
    await write(file, true);
    expect((await readSealedHeader(file))?.tensors.get('large')?.shape).toEqual([3, 5000]);
  });

  it('is absent from a file that was not sealed', async () => {
    const file = join(await temporaryFolder(), 'a.safetensors');
    await write(file);
    expect(await readSealedHeader(file)).toBeNull();
  });

  it.each<[string, string, number]>([
    ['first byte of a tensor', 'large', 0],
    ['last of the first 4096 bytes', 'large', 4095],
    ['first of the last 4096 bytes', 'large', 15000 - 4096],
    ['last byte of a tensor', 'large', 14999],
    ['middle of a small tensor', 'odd', 2],
  ])('breaks with the %s', async (_, name, at) => {
    const file = join(await temporaryFolder(), 'a.safetensors');
    await write(file, true);
    const { tensors } = await readSafetensorsHeader(file);
    const bytes = await readFile(file);
    bytes[tensors.get(name)!.offset + at]! ^= 1;
    await writeFile(file, bytes);
    expect(await readSealedHeader(file)).toBeNull();
  });

  it('breaks with the header', async () => {
    const file = join(await temporaryFolder(), 'a.safetensors');
    await write(file, true);
    const bytes = await readFile(file);
    bytes.write('"y"', bytes.indexOf('"x"'));
    await writeFile(file, bytes);
    expect(await readSealedHeader(file)).toBeNull();
  });
});
