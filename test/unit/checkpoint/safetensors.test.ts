import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSafetensorsHeader } from '../../../src/checkpoint/safetensors.ts';
import { f32, rawSafetensors, safetensors, temporaryFolder } from './checkpoint-fixture.ts';
import { expectAppError } from './expect-app-error.ts';

async function fileOf(bytes: Uint8Array): Promise<string> {
  const file = join(await temporaryFolder(), 'some.safetensors');
  await writeFile(file, bytes);
  return file;
}

function entry(shape: unknown, offsets: unknown, dtype: unknown = 'F32'): string {
  return JSON.stringify({ a: { dtype, shape, data_offsets: offsets } });
}

const EIGHT = new Uint8Array(8);

describe('readSafetensorsHeader', () => {
  it('gives dtype, shape and place of each tensor, and the metadata', async () => {
    const bytes = safetensors(
      { first: f32([2, 2], new Float32Array(4)), scalar: { dtype: 'BF16', shape: [], data: new Uint16Array(1) } },
      { format: 'pt' },
    );
    const header = await readSafetensorsHeader(await fileOf(bytes));
    expect(header.metadata).toEqual({ format: 'pt' });
    expect([...header.tensors]).toEqual([
      ['first', { file: header.file, offset: bytes.length - 18, byteLength: 16, dtype: 'F32', shape: [2, 2] }],
      ['scalar', { file: header.file, offset: bytes.length - 2, byteLength: 2, dtype: 'BF16', shape: [] }],
    ]);
  });

  it.each([
    ['F64', 8],
    ['F32', 4],
    ['F16', 2],
    ['BF16', 2],
    ['F8_E4M3', 1],
    ['F8_E5M2', 1],
    ['I64', 8],
    ['I32', 4],
    ['I16', 2],
    ['I8', 1],
    ['U64', 8],
    ['U32', 4],
    ['U16', 2],
    ['U8', 1],
    ['BOOL', 1],
    ['F4', 0.5],
  ])('knows the size of %s', async (dtype, size) => {
    const file = await fileOf(rawSafetensors(entry([6], [0, 6 * size], dtype), new Uint8Array(6 * size)));
    expect((await readSafetensorsHeader(file)).tensors.get('a')?.byteLength).toBe(6 * size);
  });

  it('takes an empty tensor and a tensor called __proto__', async () => {
    const json = '{"__proto__":{"dtype":"U8","shape":[3,0],"data_offsets":[0,0]}}';
    expect((await readSafetensorsHeader(await fileOf(rawSafetensors(json)))).tensors.get('__proto__')?.byteLength).toBe(0);
  });

  it.each<[string, Uint8Array, RegExp]>([
    ['an empty file', new Uint8Array(), /expected at least 8 bytes in .*, got 0;/],
    [
      'a header length beyond any header',
      Buffer.from('ffffffffffffffff7b7d', 'hex'),
      /at most 100000000 bytes .* got a length of 18446744073709551615/,
    ],
    [
      'a file that ends inside the header',
      rawSafetensors('{"a":1}').subarray(0, 12),
      /header of 7 bytes .* a file of 12 bytes/,
    ],
    ['a header that is not JSON', rawSafetensors('PK zip'), /expected a JSON header in/],
    ['a header that is not UTF-8', Buffer.from(rawSafetensors('{"a~":1}')).fill(0xff, 11, 12), /expected a JSON header in/],
    ['a header that is an array', rawSafetensors('[]'), /expected a JSON object as header .* got an array/],
    ['metadata that is no object', rawSafetensors('{"__metadata__":3}'), /object as __metadata__ .* got number/],
    ['metadata that is no text', rawSafetensors('{"__metadata__":{"k":{}}}'), /text as metadata k .* got object/],
    ['an entry that is no object', rawSafetensors('{"a":3}'), /object for tensor a in .* got number/],
    ['an unknown dtype', rawSafetensors(entry([2], [0, 8], 'F128'), EIGHT), /known dtype for tensor a .* got "F128"/],
    ['a dtype that objects have by nature', rawSafetensors(entry([2], [0, 8], 'toString'), EIGHT), /known dtype/],
    [
      'a missing shape',
      rawSafetensors('{"a":{"dtype":"F32","data_offsets":[0,8]}}', EIGHT),
      /a shape of whole numbers for tensor a/,
    ],
    ['a negative dimension', rawSafetensors(entry([-2, -1], [0, 8]), EIGHT), /a shape of whole numbers .* got \[-2,-1\]/],
    [
      'an infinite dimension',
      rawSafetensors('{"a":{"dtype":"U8","shape":[1e999],"data_offsets":[0,8]}}', EIGHT),
      /a shape of whole numbers/,
    ],
    ['a fractional dimension', rawSafetensors(entry([0.5, 4], [0, 8]), EIGHT), /a shape of whole numbers/],
    [
      'dimensions whose product overflows',
      rawSafetensors(entry([2 ** 40, 2 ** 40], [0, 8]), EIGHT),
      /expected whole bytes for tensor a/,
    ],
    ['three offsets', rawSafetensors(entry([2], [0, 8, 8]), EIGHT), /data_offsets \[begin, end\] for tensor a/],
    ['offsets in the wrong order', rawSafetensors(entry([2], [8, 0]), EIGHT), /data_offsets \[begin, end\]/],
    ['a negative offset', rawSafetensors(entry([2], [-8, 0]), EIGHT), /data_offsets \[begin, end\]/],
    [
      'a shape that does not fill its bytes',
      rawSafetensors(entry([3], [0, 8]), EIGHT),
      /expected 12 bytes for tensor a \(F32 \[3\]\) .* got 8;/,
    ],
    [
      'data that ends early',
      rawSafetensors(entry([2], [0, 8]), new Uint8Array(7)),
      /expected \d+ bytes, as its header says, .* got \d+;/,
    ],
    ['bytes after the last tensor', rawSafetensors(entry([2], [0, 8]), new Uint8Array(9)), /as its header says/],
    [
      'tensors on the same bytes',
      rawSafetensors(
        '{"b":{"dtype":"U8","shape":[5],"data_offsets":[3,8]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        EIGHT,
      ),
      /do not overlap .* got a and b on the same bytes/,
    ],
    [
      'a name that comes twice, once with an escape',
      rawSafetensors(
        '{"__metadata__":{"m":"\\" {"},"x": {"dtype":"U8","shape":[4],"data_offsets":[0,4]}, "\\u0078" : {"dtype":"U8","shape":[4],"data_offsets":[4,8]}}',
        EIGHT,
      ),
      /expected each tensor once .* got x twice/,
    ],
  ])('refuses %s', async (_, bytes, pattern) => {
    await expectAppError(readSafetensorsHeader(await fileOf(bytes)), 'invalid_checkpoint', pattern);
  });

  it('does not take equal keys of different entries for duplicates', async () => {
    const json =
      '{"__metadata__":{"a":"\\"b\\": {","dtype":"x"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}';
    const header = await readSafetensorsHeader(await fileOf(rawSafetensors(json, EIGHT)));
    expect([...header.tensors.keys()]).toEqual(['a', 'b']);
  });
});
