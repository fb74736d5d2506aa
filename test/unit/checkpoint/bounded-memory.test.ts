import { execFile } from 'node:child_process';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { bytesOf } from '../../../src/checkpoint/file-io.ts';
import { temporaryFolder, weights } from './checkpoint-fixture.ts';

const MIB = 1 << 20;

/** A model of two tensors of 100 MiB of BF16, written in pieces. */
async function largeModel(): Promise<string> {
  const folder = await temporaryFolder();
  const bytes = 100 * MIB;
  const entries = ['a', 'b'].map((name, i) => [
    name,
    { dtype: 'BF16', shape: [bytes / 2048, 1024], data_offsets: [i * bytes, (i + 1) * bytes] },
  ]);
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const piece = Uint16Array.from(new Uint32Array(weights(MIB / 2).buffer), (bits) => bits >>> 16);
  await using handle = await open(join(folder, 'model.safetensors'), 'w');
  await handle.writev([length, header]);
  for (let i = 0; i < 200; i++) await handle.write(bytesOf(piece));
  return folder;
}

it('prepares 200 MiB of weights with much less memory than they take', async () => {
  const folder = await largeModel();
  const cacheFile = join(folder, 'cache.safetensors');
  const script = join(import.meta.dirname, 'measure-preparation.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script, folder, cacheFile]);
  expect((await stat(cacheFile)).size).toBeGreaterThan(62 * MIB);
  expect(Number(stdout)).toBeGreaterThan(0);
  expect(Number(stdout)).toBeLessThan(100 * MIB);
});
