import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { type PreparedWeights, prepareWeights } from '../../../src/checkpoint/prepare-weights.ts';
import type { ComputeFormat, PlannedWeight, WeightFormat, WeightKind } from '../../../src/checkpoint/weight-plan.ts';
import { f32, modelFolder, temporaryFolder } from './checkpoint-fixture.ts';
import { expectAppError } from './expect-app-error.ts';

const COLUMNS = 40;

async function prepare(values: Float32Array, kind: WeightKind, format: WeightFormat, compute: ComputeFormat) {
  const shape = [values.length / COLUMNS, COLUMNS];
  const checkpoint = await openCheckpoint(await modelFolder({ matrix: f32(shape, values) }));
  const plan: PlannedWeight[] = [{ name: 'w', source: 'matrix', kind, shape }];
  return prepareWeights({ checkpoint, plan, format, compute, outDir: await temporaryFolder() });
}

async function halvesAt(prepared: PreparedWeights, name: string): Promise<Uint16Array> {
  const { file, offset, byteLength } = prepared.get(name)!;
  const bytes = (await readFile(file)).subarray(offset, offset + byteLength);
  return new Uint16Array(Uint8Array.from(bytes).buffer);
}

/** 1, 2, −1.5, and zeros to the end of a row. */
const VALUES = Float32Array.from({ length: COLUMNS }, (_, i) => [1, 2, -1.5][i] ?? 0);

describe('weights for computing in 16 bits', () => {
  it.each<[WeightFormat & ComputeFormat, string, number[]]>([
    ['f16', 'F16', [0x3c00, 0x4000, 0xbe00]],
    ['bf16', 'BF16', [0x3f80, 0x4000, 0xbfc0]],
  ])('are %s, matrices and vectors alike', async (format, dtype, bits) => {
    for (const kind of ['linear', 'head', 'vector'] as const) {
      const prepared = await prepare(VALUES, kind, format, format);
      expect(prepared.get('w')!.dtype, kind).toBe(dtype);
      expect([...(await halvesAt(prepared, 'w')).subarray(0, 3)], kind).toEqual(bits);
    }
  });

  it('stay F32 where they have to be exact', async () => {
    expect((await prepare(VALUES, 'exact', 'bf16', 'bf16')).get('w')!.dtype).toBe('F32');
  });

  it('are as they were, with scales in 16 bits, where they are quantised', async () => {
    const prepared = await prepare(VALUES, 'linear', 'int8', 'bf16');
    expect(prepared.get('w.q')!.dtype).toBe('U8');
    expect(prepared.get('w.scale')).toMatchObject({ dtype: 'BF16', shape: [1, 2] });
    // 2 / 127, rounded to 8 bits of mantissa.
    expect([...(await halvesAt(prepared, 'w.scale'))]).toEqual([0x3c81, 0]);
  });

  it.each<[string, WeightKind, WeightFormat]>([
    ['a matrix', 'linear', 'f16'],
    ['a vector', 'vector', 'f16'],
    ['a scale', 'linear', 'int8'],
  ])('do not become infinite: %s that an f16 cannot hold is named', async (_, kind, format) => {
    const values = new Float32Array(3 * COLUMNS);
    values[2 * COLUMNS + 5] = format === 'int8' ? -1e7 : -70_000;
    const pattern = /fit 16 bits in w, got -?(70000|78740\.\d+) in row 2; an f16 reaches 65504, so choose bf16/;
    await expectAppError(prepare(values, kind, format, 'f16'), 'invalid_checkpoint', pattern);
    await expect(prepare(values, kind, format === 'f16' ? 'bf16' : format, 'bf16')).resolves.toBeDefined();
  });
});
