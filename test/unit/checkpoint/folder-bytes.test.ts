import { expect, it } from 'vitest';
import { folderBytes } from '../../../src/checkpoint/folder-bytes.ts';
import { f32, modelFolder, weights } from './checkpoint-fixture.ts';

it.each([
  ['f32', 4 * (3 * 40 + 5)],
  ['f16', 2 * (3 * 40 + 5)],
  // Two blocks of 32 a row, each with a scale; vectors stay as they are computed in.
  ['int8', 3 * 2 * (32 + 4) + 4 * 5],
  ['int4', 3 * 2 * (32 + 4) + 4 * 5],
] as const)('the weights of a folder take what its headers say (%s)', async (format, bytes) => {
  const folder = await modelFolder({ matrix: f32([3, 40], weights(120)), vector: f32([5], weights(5)) });
  expect(await folderBytes(folder, format)).toBe(bytes);
});
