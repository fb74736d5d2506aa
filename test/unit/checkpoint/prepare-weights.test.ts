import { utimesSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dequantizeRows, quantizedShape, quantizeRows } from '../../../src/checkpoint/block-quantization.ts';
import { type Checkpoint, openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { type PreparedWeights, prepareWeights } from '../../../src/checkpoint/prepare-weights.ts';
import type { PlannedWeight, WeightFormat, WeightKind } from '../../../src/checkpoint/weight-plan.ts';
import { f32, modelFolder, safetensors, temporaryFolder, weights } from './checkpoint-fixture.ts';
import { expectAppError } from './expect-app-error.ts';

const ROWS = 6;
const COLUMNS = 40;
const MATRIX = weights(ROWS * COLUMNS);
const HALVES = Uint16Array.from({ length: ROWS * COLUMNS }, (_, i) => 0x3c00 + i);
const VECTOR = Uint16Array.of(0x3f80, 0xc000);

function modelTensors() {
  return {
    matrix: f32([ROWS, COLUMNS], MATRIX),
    halves: { dtype: 'F16', shape: [ROWS, COLUMNS], data: HALVES },
    vector: { dtype: 'BF16', shape: [2], data: VECTOR },
  };
}

function planned(
  kind: WeightKind,
  source: string | readonly string[] = 'matrix',
  shape: readonly number[] = [ROWS, COLUMNS],
): PlannedWeight {
  return { name: 'w', source, kind, shape };
}

async function prepare(checkpoint: Checkpoint, format: WeightFormat, ...plan: PlannedWeight[]): Promise<PreparedWeights> {
  return prepareWeights({ checkpoint, plan, format, cacheFile: join(await temporaryFolder(), 'cache.safetensors') });
}

async function bytesAt(weightsByName: PreparedWeights, name: string): Promise<Buffer> {
  const location = weightsByName.get(name)!;
  const bytes = await readFile(location.file);
  return Buffer.from(bytes.subarray(location.offset, location.offset + location.byteLength));
}

async function floatsAt(prepared: PreparedWeights, name: string): Promise<Float32Array> {
  const bytes = await bytesAt(prepared, name);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

function quantized(bits: 8 | 4, values: Float32Array, rows: number): { values: Buffer; scales: Float32Array } {
  const columns = values.length / rows;
  const codes = new Uint8Array(quantizedShape(bits, rows, columns).reduce((a, b) => a * b));
  const scales = new Float32Array(rows * Math.ceil(columns / 32));
  quantizeRows(bits, values, rows, columns, codes, scales);
  return { values: Buffer.from(codes), scales };
}

describe('prepareWeights: conversion', () => {
  it.each<[WeightFormat, WeightKind, 8 | 4]>([
    ['int8', 'linear', 8],
    ['int8', 'head', 8],
    ['int4', 'linear', 4],
    ['int4', 'head', 8],
  ])('gives %s %s weights as values and scales of %i bits', async (format, kind, bits) => {
    const prepared = await prepare(await openCheckpoint(await modelFolder(modelTensors())), format, planned(kind));
    expect([...prepared.keys()]).toEqual(['w.q', 'w.scale']);
    expect(prepared.get('w.q')).toMatchObject({ dtype: 'U8', shape: [ROWS, 2, bits * 4] });
    expect(prepared.get('w.scale')).toMatchObject({ dtype: 'F32', shape: [ROWS, 2] });
    const expected = quantized(bits, MATRIX, ROWS);
    expect(await bytesAt(prepared, 'w.q')).toEqual(expected.values);
    expect(await floatsAt(prepared, 'w.scale')).toEqual(expected.scales);
  });

  it('widens vectors, and matrices in f32', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors()));
    const plan = [planned('linear', 'halves'), { ...planned('vector', 'vector', [2]), name: 'v' }];
    const prepared = await prepare(checkpoint, 'f32', ...plan);
    expect(await floatsAt(prepared, 'w')).toEqual(await checkpoint.readRows('halves', 0, ROWS));
    expect(await floatsAt(prepared, 'v')).toEqual(Float32Array.of(1, -2));
    expect(prepared.get('v')).toMatchObject({ dtype: 'F32', shape: [2] });
  });

  it('puts the rows of several tensors under one another', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors()));
    const prepared = await prepare(checkpoint, 'f32', planned('linear', ['halves', 'matrix'], [2 * ROWS, COLUMNS]));
    const values = await floatsAt(prepared, 'w');
    expect(values.subarray(0, MATRIX.length)).toEqual(await checkpoint.readRows('halves', 0, ROWS));
    expect(values.subarray(MATRIX.length)).toEqual(MATRIX);
  });

  it('keeps chosen rows in their order, of joined tensors too', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors()));
    const rows = Int32Array.of(7, 8, 11, 0, 0, 5, 6, 1);
    const plan = { ...planned('head', ['halves', 'matrix'], [rows.length, COLUMNS]), rows };
    const values = await floatsAt(await prepare(checkpoint, 'f32', plan), 'w');
    const all = new Float32Array([...(await checkpoint.readRows('halves', 0, ROWS)), ...MATRIX]);
    for (const [i, row] of rows.entries()) {
      expect(values.subarray(i * COLUMNS, (i + 1) * COLUMNS), `row ${row}`).toEqual(
        all.subarray(row * COLUMNS, (row + 1) * COLUMNS),
      );
    }
  });

  it('keeps the bytes of an embedding whose rows are chosen', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors()));
    const plan = { ...planned('embedding', 'halves', [1, COLUMNS]), rows: Int32Array.of(2) };
    const prepared = await prepare(checkpoint, 'int8', plan);
    expect(prepared.get('w')).toMatchObject({ dtype: 'F16', shape: [1, COLUMNS] });
    expect(await bytesAt(prepared, 'w')).toEqual(Buffer.from(HALVES.slice(2 * COLUMNS, 3 * COLUMNS).buffer));
  });

  it('converts a large matrix in pieces, lets the event loop turn between them and tells the progress', async () => {
    const large = weights(2_500_000);
    const checkpoint = await openCheckpoint(await modelFolder({ matrix: f32([2500, 1000], large) }));
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const calls: [number, number][] = [];
    const prepared = await prepareWeights({
      checkpoint,
      plan: [planned('linear', 'matrix', [2500, 1000])],
      format: 'int8',
      outDir: await temporaryFolder(),
      onProgress: (done, total) => calls.push([done, total]),
    });
    clearInterval(timer);
    expect(turns).toBeGreaterThanOrEqual(3);
    const fileBytes = (await stat(join(checkpoint.folder, 'model.safetensors'))).size;
    const total = fileBytes + 2500 * 32 * 36;
    expect(calls.every(([, each]) => each === total)).toBe(true);
    expect(calls.at(-1)![0]).toBe(total);
    expect(calls.map(([done]) => done)).toEqual(calls.map(([done]) => done).toSorted((a, b) => a - b));
    const expected = quantized(8, large, 2500);
    expect((await bytesAt(prepared, 'w.q')).equals(expected.values)).toBe(true);
  });

  it.each<[string, PlannedWeight, RegExp]>([
    [
      'another shape',
      planned('linear', 'matrix', [ROWS, 41]),
      /expected shape \[6, 41\] for w, got \[6, 40\] from matrix in .*; check that config\.json/,
    ],
    [
      'another number of joined rows',
      planned('linear', ['matrix', 'halves'], [7, COLUMNS]),
      /got \[12, 40\] from matrix \+ halves/,
    ],
    [
      'joined rows of different length',
      planned('linear', ['matrix', 'vector'], [8, COLUMNS]),
      /expected rows of \[40\] to join into w, got \[\] in tensor vector/,
    ],
    [
      'a row out of range',
      { ...planned('head', 'matrix', [1, COLUMNS]), rows: Int32Array.of(6) },
      /expected rows within \[0, 6\) for w, got row 6/,
    ],
    ['a negative row', { ...planned('head', 'matrix', [1, COLUMNS]), rows: Int32Array.of(-1) }, /got row -1/],
    ['an absent tensor', planned('linear', 'other'), /expected tensor other in/],
  ])('refuses %s', async (_, weight, pattern) => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors()));
    await expectAppError(prepare(checkpoint, 'int8', weight), 'invalid_checkpoint', pattern);
  });

  it('refuses tensors that are no floats before anything is read or written', async () => {
    const checkpoint = await openCheckpoint(await modelFolder({ ids: { dtype: 'I32', shape: [2], data: new Int32Array(2) } }));
    const outDir = join(await temporaryFolder(), 'never-made');
    const preparing = prepareWeights({ checkpoint, plan: [planned('vector', 'ids', [2])], format: 'f32', outDir });
    await expectAppError(preparing, 'invalid_checkpoint', /values in tensor ids, got I32/);
    await expect(stat(outDir)).rejects.toThrow('ENOENT');
  });

  it('refuses to quantise a NaN and names its row', async () => {
    const values = MATRIX.slice();
    values[4 * COLUMNS + 33] = Number.NaN;
    const checkpoint = await openCheckpoint(await modelFolder({ matrix: f32([ROWS, COLUMNS], values) }));
    await expectAppError(
      prepare(checkpoint, 'int8', planned('linear')),
      'invalid_checkpoint',
      /finite values in w, got a NaN or an infinity in row 4;/,
    );
  });

  it('refuses two weights of one name, and a matrix of one dimension', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors()));
    await expectAppError(
      prepare(checkpoint, 'f32', planned('linear'), planned('linear')),
      'internal',
      /give each its own name/,
    );
    await expectAppError(
      prepare(checkpoint, 'f32', planned('linear', 'vector', [2])),
      'internal',
      /two dimensions for the linear w/,
    );
  });
});

describe('prepareWeights: in place', () => {
  it('refers to float32 matrices and vectors and to embeddings of any float, and writes nothing', async () => {
    const checkpoint = await openCheckpoint(await modelFolder({ ...modelTensors(), norm: f32([2], Float32Array.of(1, 2)) }));
    const outDir = await temporaryFolder();
    const plan = [
      planned('linear'),
      { ...planned('vector', 'norm', [2]), name: 'norm' },
      { ...planned('embedding', 'halves'), name: 'embedding' },
    ];
    const prepared = await prepareWeights({ checkpoint, plan, format: 'f32', outDir });
    for (const location of prepared.values()) expect(basename(location.file)).toBe('model.safetensors');
    expect(await floatsAt(prepared, 'w')).toEqual(MATRIX);
    expect(await bytesAt(prepared, 'embedding')).toEqual(Buffer.from(HALVES.buffer));
    expect(await readdir(outDir)).toEqual([]);
  });

  it('copies what is not aligned', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(modelTensors(), undefined, 1));
    const plan = [planned('linear'), { ...planned('embedding', 'halves'), name: 'embedding' }];
    const prepared = await prepare(checkpoint, 'f32', ...plan);
    for (const location of prepared.values()) expect(basename(location.file)).toBe('cache.safetensors');
    expect(await floatsAt(prepared, 'w')).toEqual(MATRIX);
    expect(await bytesAt(prepared, 'embedding')).toEqual(Buffer.from(HALVES.buffer));
  });

  it('refers to quantised pairs of the wanted bits and converts all others from their values', async () => {
    const pair = quantized(8, MATRIX, ROWS);
    const folder = await modelFolder(
      {
        'm.scale': f32([ROWS, 2], pair.scales),
        'm.q': { dtype: 'U8', shape: [ROWS, 2, 32], data: pair.values },
      },
      { format: 'blockdraft', shapes: `{"m":[${ROWS},${COLUMNS}]}` },
    );
    const checkpoint = await openCheckpoint(folder);
    const values = new Float32Array(MATRIX.length);
    dequantizeRows(8, pair.values, pair.scales, ROWS, COLUMNS, values);

    const int8 = await prepare(checkpoint, 'int8', planned('linear', 'm'));
    expect(basename(int8.get('w.q')!.file)).toBe('model.safetensors');
    expect(await bytesAt(int8, 'w.q')).toEqual(pair.values);
    expect(await floatsAt(int8, 'w.scale')).toEqual(pair.scales);
    const head = await prepare(checkpoint, 'int4', planned('head', 'm'));
    expect(basename(head.get('w.scale')!.file)).toBe('model.safetensors');

    const int4 = await prepare(checkpoint, 'int4', planned('linear', 'm'));
    expect(await bytesAt(int4, 'w.q')).toEqual(quantized(4, values, ROWS).values);
    for (const kind of ['linear', 'embedding'] as const) {
      const plain = await prepare(checkpoint, 'f32', planned(kind, 'm'));
      expect(plain.get('w')).toMatchObject({ dtype: 'F32', shape: [ROWS, COLUMNS] });
      expect(await floatsAt(plain, 'w')).toEqual(values);
    }
    const reduced = await prepare(checkpoint, 'int8', { ...planned('head', 'm', [2, COLUMNS]), rows: Int32Array.of(4, 1) });
    expect(await bytesAt(reduced, 'w.q')).toEqual(
      Buffer.concat([pair.values.subarray(256, 320), pair.values.subarray(64, 128)]),
    );
  });
});

describe('prepareWeights: the cache file', () => {
  async function setUp() {
    const folder = await modelFolder(modelTensors());
    const cacheFile = join(await temporaryFolder(), 'below', 'cache.safetensors');
    const work = { progress: 0 };
    async function run(changes: { format?: WeightFormat; plan?: readonly PlannedWeight[] } = {}) {
      work.progress = 0;
      const before = await stat(cacheFile).catch(() => null);
      const prepared = await prepareWeights({
        checkpoint: await openCheckpoint(folder),
        plan: [planned('linear')],
        format: 'int8',
        cacheFile,
        onProgress: () => work.progress++,
        ...changes,
      });
      return { prepared, built: before?.ino !== (await stat(cacheFile)).ino };
    }
    return { folder, source: join(folder, 'model.safetensors'), cacheFile, run, work };
  }

  it('is used again, without reading the weights', async () => {
    const { run, work } = await setUp();
    const first = await run();
    const second = await run();
    expect(first.built).toBe(true);
    expect(second.built).toBe(false);
    expect(work.progress).toBe(0);
    expect(second.prepared).toEqual(first.prepared);
  });

  it('is kept when the weights have a new time and the same content, which is then known', async () => {
    const { run, source, work } = await setUp();
    await run();
    await utimes(source, 1_000_000, 1_000_000);
    expect((await run()).built).toBe(false);
    expect(work.progress).toBeGreaterThan(0);
    await run();
    expect(work.progress).toBe(0);
  });

  it('is kept when what is known about the weights is lost or unreadable', async () => {
    const { run, cacheFile } = await setUp();
    await run();
    for (const text of ['', '[{"path":', '[{"path":"x"}]']) {
      await writeFile(`${cacheFile}.sources.json`, text);
      expect((await run()).built).toBe(false);
    }
  });

  it('is built again when the weights have another content, even of the same size and time', async () => {
    const { run, source } = await setUp();
    await utimes(source, 1000, 1000);
    const { prepared } = await run();
    const before = await bytesAt(prepared, 'w.q');
    await writeFile(source, safetensors({ ...modelTensors(), matrix: f32([ROWS, COLUMNS], weights(MATRIX.length, 2)) }));
    await utimes(source, 1000, 1000);
    const again = await run();
    expect(again.built).toBe(true);
    expect(await bytesAt(again.prepared, 'w.q')).not.toEqual(before);
  });

  it.each<[string, { format?: WeightFormat; plan?: readonly PlannedWeight[] }]>([
    ['another format', { format: 'int4' }],
    ['another source of the same shape', { plan: [planned('linear', 'halves')] }],
    ['another name', { plan: [{ ...planned('linear'), name: 'x' }] }],
    ['other rows', { plan: [{ ...planned('linear'), rows: Int32Array.of(5, 4, 3, 2, 1, 0) }] }],
  ])('is built again for %s', async (_, changes) => {
    const { run } = await setUp();
    await run();
    expect((await run(changes)).built).toBe(true);
    expect((await run(changes)).built).toBe(false);
    expect((await run()).built).toBe(true);
  });

  it.each<[string, (bytes: Buffer) => Uint8Array]>([
    ['empty', () => Buffer.alloc(0)],
    ['cut off', (bytes) => bytes.subarray(0, -1)],
    ['longer than it should be', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)])],
    ['zero at its end', (bytes) => Buffer.from(bytes).fill(0, bytes.length - 8)],
    [
      'of another version',
      (bytes) => Buffer.from(bytes.toString('latin1').replace('"version":"1"', '"version":"0"'), 'latin1'),
    ],
    ['of a foreign kind', () => safetensors(modelTensors())],
    ['no safetensors file', () => Buffer.from('<html>not found</html>')],
  ])('is built again when it is %s', async (_, damage) => {
    const { run, cacheFile } = await setUp();
    const good = await bytesAt((await run()).prepared, 'w.q');
    await writeFile(cacheFile, damage(await readFile(cacheFile)));
    const again = await run();
    expect(again.built).toBe(true);
    expect(await bytesAt(again.prepared, 'w.q')).toEqual(good);
  });

  it('of another model at the same place is not used', async () => {
    const { run, cacheFile } = await setUp();
    const other = await modelFolder({ matrix: f32([ROWS, COLUMNS], weights(MATRIX.length, 3)) });
    await prepareWeights({ checkpoint: await openCheckpoint(other), plan: [planned('linear')], format: 'int8', cacheFile });
    expect((await run()).built).toBe(true);
  });

  it('may be built by several at once', async () => {
    const { run, cacheFile } = await setUp();
    const all = await Promise.all([run(), run(), run(), run()]);
    for (const { prepared } of all) expect(await bytesAt(prepared, 'w.q')).toEqual(quantized(8, MATRIX, ROWS).values);
    expect((await readdir(join(cacheFile, '..'))).sort()).toEqual(['cache.safetensors', 'cache.safetensors.sources.json']);
    expect((await run()).built).toBe(false);
  });

  it('has a name of its own in a folder, for each model, plan and format', async () => {
    const { folder, source } = await setUp();
    const twin = join(await temporaryFolder(), basename(folder));
    await mkdir(twin);
    await copyFile(source, join(twin, 'model.safetensors'));
    const outDir = await temporaryFolder();
    const files = new Set<string>();
    for (const place of [folder, twin, folder]) {
      for (const format of ['int8', 'int4'] as const) {
        for (const plan of [[planned('linear')], [planned('linear', 'halves')]]) {
          const prepared = await prepareWeights({ checkpoint: await openCheckpoint(place), plan, format, outDir });
          files.add(prepared.get('w.q')!.file);
        }
      }
    }
    expect(files.size).toBe(8);
    for (const file of files) expect(basename(file)).toMatch(/^blockdraft-checkpoint-\w+-int[48]-[0-9a-f]{16}\.safetensors$/);
  });

  it('is not left half-built by an abort', async () => {
    const { folder, cacheFile } = await setUp();
    const controller = new AbortController();
    const preparing = prepareWeights({
      checkpoint: await openCheckpoint(folder),
      plan: [planned('linear'), { ...planned('linear', 'halves'), name: 'second' }],
      format: 'int8',
      cacheFile,
      signal: controller.signal,
      onProgress: (done, total) => {
        if (done > total / 2) controller.abort();
      },
    });
    await expectAppError(preparing, 'aborted', /given up/);
    expect(await readdir(join(cacheFile, '..'))).toEqual(['cache.safetensors.sources.json']);
  });

  it('is not kept when the weights change while it is made', async () => {
    const { folder, source, cacheFile } = await setUp();
    const preparing = prepareWeights({
      checkpoint: await openCheckpoint(folder),
      plan: [planned('linear')],
      format: 'int8',
      cacheFile,
      onProgress: () => utimesSync(source, 5, 5),
    });
    await expectAppError(preparing, 'invalid_checkpoint', /to stay as it is while its weights are prepared/);
    await expect(stat(cacheFile)).rejects.toThrow('ENOENT');
  });

  it('that cannot be written is an error that names the folder and the way out', async () => {
    const { folder } = await setUp();
    const blocked = join(await temporaryFolder(), 'file');
    await writeFile(blocked, '');
    const checkpoint = await openCheckpoint(folder);
    const pattern = /expected a folder that can be written at .*file.* got E\w+; set BLOCKDRAFT_CACHE_DIR/;
    const common = { checkpoint, plan: [planned('linear')], format: 'int8' as const };
    await expectAppError(prepareWeights({ ...common, outDir: join(blocked, 'cache') }), 'invalid_config', pattern);
    const cacheFile = join(await temporaryFolder(), 'file.safetensors');
    await mkdir(cacheFile);
    await expectAppError(prepareWeights({ ...common, cacheFile }), 'invalid_config', /expected a folder that can be written/);
  });
});
