import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Checkpoint, openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { exportWeights } from '../../../src/checkpoint/export-weights.ts';
import { prepareWeights } from '../../../src/checkpoint/prepare-weights.ts';
import { readSafetensorsHeader } from '../../../src/checkpoint/safetensors.ts';
import type { PlannedWeight, WeightFormat } from '../../../src/checkpoint/weight-plan.ts';
import { f32, modelFolder, temporaryFolder, weights } from './checkpoint-fixture.ts';
import { expectAppError } from './expect-app-error.ts';

const TENSORS = {
  'embed.weight': f32([50, 40], weights(2000, 3)),
  'layers.0.up.weight': f32([30, 40], weights(1200, 1)),
  'layers.0.norm.weight': f32([40], weights(40, 2)),
  'layers.1.up.weight': f32([30, 40], weights(1200, 4)),
};
const PLAN: readonly PlannedWeight[] = Object.entries(TENSORS).map(([name, { shape }]) => ({
  name,
  source: name,
  shape,
  kind: shape.length === 1 ? 'vector' : name === 'embed.weight' ? 'head' : 'linear',
}));

async function exported(
  format: WeightFormat,
  shardBytes?: number,
): Promise<{ original: Checkpoint; copy: Checkpoint; outDir: string }> {
  const original = await openCheckpoint(await modelFolder(TENSORS));
  const outDir = join(await temporaryFolder(), 'out');
  await exportWeights({
    checkpoint: original,
    plan: PLAN,
    format,
    outDir,
    ...(shardBytes === undefined ? {} : { shardBytes }),
  });
  return { original, copy: await openCheckpoint(outDir), outDir };
}

describe('exportWeights', () => {
  it('shows the same tensors under the same names, quantised ones with their bits', async () => {
    const { copy } = await exported('int8');
    expect([...copy.names].sort()).toEqual(Object.keys(TENSORS).sort());
    expect(copy.tensor('layers.0.up.weight')).toMatchObject({ type: 'quantized', bits: 8, block: 32, shape: [30, 40] });
    expect(copy.tensor('layers.0.norm.weight')).toMatchObject({ type: 'plain', dtype: 'F32', shape: [40] });
  });

  it.each<[WeightFormat, number]>([
    ['f32', 0],
    ['int8', 0.2 / 254],
    ['int4', 0.2 / 8],
  ])('reads as float32 in %s, each value within its rounding', async (format, tolerance) => {
    const { original, copy } = await exported(format);
    for (const name of original.names) {
      const rows = original.tensor(name).shape[0]!;
      const expected = await original.readRows(name, 0, rows);
      const actual = await copy.readRows(name, 0, rows);
      const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - actual[i]!)), 0);
      expect(worst, name).toBeLessThanOrEqual(name === 'layers.0.norm.weight' ? 0 : tolerance * 1.001);
    }
  });

  it('keeps the head at int8 in an int4 model', async () => {
    const { copy } = await exported('int4');
    expect(copy.tensor('embed.weight')).toMatchObject({ bits: 8 });
    expect(copy.tensor('layers.1.up.weight')).toMatchObject({ bits: 4 });
  });

  it('is used in place when it is prepared in its own format', async () => {
    const { copy } = await exported('int8');
    const outDir = await temporaryFolder();
    const prepared = await prepareWeights({ checkpoint: copy, plan: PLAN, format: 'int8', outDir });
    expect(prepared.size).toBe(7);
    expect(await readdir(outDir)).toEqual([]);
    for (const location of prepared.values()) expect(location.offset % 64).toBe(0);
  });

  it('is the same when exported once more', async () => {
    const { copy, outDir } = await exported('int8');
    const again = join(await temporaryFolder(), 'again');
    await exportWeights({ checkpoint: copy, plan: PLAN, format: 'int8', outDir: again });
    const file = 'model-00001-of-00001.safetensors';
    expect((await readFile(join(again, file))).equals(await readFile(join(outDir, file)))).toBe(true);
  });

  it('cuts shards below the limit and writes what transformers needs to find them', async () => {
    const { copy, outDir } = await exported('int8', 4600);
    const shards = (await readdir(outDir)).filter((name) => name.endsWith('.safetensors')).sort();
    expect(shards).toEqual([1, 2, 3].map((i) => `model-0000${i}-of-00003.safetensors`));
    for (const shard of shards) expect((await stat(join(outDir, shard))).size).toBeLessThanOrEqual(4600);
    const index = JSON.parse(await readFile(join(outDir, 'model.safetensors.index.json'), 'utf8'));
    expect(index.metadata.total_size).toBe(110 * 2 * 36 + 160);
    expect(Object.keys(index.weight_map)).toHaveLength(7);
    expect(index.weight_map['embed.weight.q']).toBe(index.weight_map['embed.weight.scale']);
    const { metadata } = await readSafetensorsHeader(join(outDir, shards[0]!));
    expect(metadata).toMatchObject({ format: 'blockdraft', weights: 'int8', version: '1' });
    expect(copy.names).toHaveLength(4);
  });

  it('copies configuration, tokenizer, template and licence, and nothing else', async () => {
    const folder = await modelFolder(TENSORS);
    const wanted = [
      'LICENSE',
      'README.md',
      'chat_template.jinja',
      'config.json',
      'generation_config.json',
      'tokenizer.json',
      'tokenizer_config.json',
    ];
    for (const name of [...wanted, 'pytorch_model.bin', 'training_args.bin', 'notes.md'])
      await writeFile(join(folder, name), `content of ${name}`);
    const outDir = await temporaryFolder();
    const { files, weightBytes } = await exportWeights({
      checkpoint: await openCheckpoint(folder),
      plan: PLAN,
      format: 'f32',
      outDir,
    });
    expect(weightBytes).toBe(4440 * 4);
    const own = ['model-00001-of-00001.safetensors', 'model.safetensors.index.json'];
    expect((await readdir(outDir)).sort()).toEqual([...wanted, ...own].sort());
    expect([...files].sort()).toEqual([...wanted, ...own].sort());
    for (const name of wanted) expect(await readFile(join(outDir, name), 'utf8')).toBe(`content of ${name}`);
  });

  it('refuses a folder that has weights, its own source above all', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(TENSORS));
    const exporting = exportWeights({ checkpoint, plan: PLAN, format: 'int8', outDir: checkpoint.folder });
    await expectAppError(
      exporting,
      'invalid_config',
      /expected a folder without weights at .*, got one with model\.safetensors/,
    );
  });

  it('refuses a folder that cannot be made', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(TENSORS));
    const outDir = join(checkpoint.folder, 'model.safetensors', 'below');
    await expectAppError(
      exportWeights({ checkpoint, plan: PLAN, format: 'int8', outDir }),
      'invalid_config',
      /expected to write the model to .* got ENOTDIR/,
    );
  });

  it('refuses a plan that renames or picks rows, because the copy could not be read by the same plan', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(TENSORS));
    const outDir = await temporaryFolder();
    const [first] = PLAN;
    for (const weight of [
      { ...first!, name: 'other' },
      { ...first!, rows: new Int32Array(50) },
      { ...first!, source: ['embed.weight'] },
    ]) {
      await expectAppError(
        exportWeights({ checkpoint, plan: [weight], format: 'int8', outDir }),
        'internal',
        /to be one whole tensor of that name/,
      );
    }
  });

  it('leaves no index when it is given up, so that the rest is not taken for a model', async () => {
    const checkpoint = await openCheckpoint(await modelFolder(TENSORS));
    const outDir = await temporaryFolder();
    const controller = new AbortController();
    const onProgress = (done: number, total: number) => {
      if (done > total / 2) controller.abort();
    };
    const exporting = exportWeights({
      checkpoint,
      plan: PLAN,
      format: 'int8',
      outDir,
      shardBytes: 4600,
      onProgress,
      signal: controller.signal,
    });
    await expectAppError(exporting, 'aborted', /given up/);
    await expectAppError(openCheckpoint(outDir), 'invalid_checkpoint', /without an index/);
  });
});
