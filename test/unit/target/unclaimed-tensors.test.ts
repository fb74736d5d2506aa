import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importCommand } from '../../../src/cli/import-command.ts';
import { CPU } from '../../../src/onnx/device.ts';
import { readModelConfig } from '../../../src/target/hf-config.ts';
import { loadTarget } from '../../../src/target/load-target.ts';
import { unclaimedTensors } from '../../../src/target/unclaimed-tensors.ts';
import { testRuntime } from '../../support/runtime.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { runCommand } from '../cli/run-command.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');
/** A copy of a target, with some keys of its config changed. */
async function targetFolder(fixture: string, changes: object): Promise<string> {
  const folder = await temporaryFolder();
  await cp(join(FIXTURES, fixture), folder, { recursive: true });
  const file = join(folder, 'config.json');
  const config = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...config, ...changes }));
  return folder;
}

async function load(folder: string, allowUnclaimed: boolean) {
  return loadTarget({
    runtime: testRuntime(),
    device: CPU,
    folder,
    config: readModelConfig(folder),
    format: 'f32',
    maxContext: 64,
    maxSequences: 1,
    maxRows: 8,
    taps: [],
    cacheDir: await temporaryFolder(),
    allowUnclaimed,
  });
}

describe('a target is refused', () => {
  it.each([
    {
      fault: 'layers beyond its last',
      fixture: 'dflash-target',
      changes: { num_hidden_layers: 5, layer_types: null },
      tensor: /layers\.5\./,
    },
    {
      fault: 'biases that its config does not name',
      fixture: 'qwen2-bias',
      changes: { model_type: 'llama' },
      tensor: /_proj\.bias/,
    },
  ])('for $fault, unless that is allowed', async ({ fixture, changes, tensor }) => {
    const folder = await targetFolder(fixture, changes);
    await expect(load(folder, false)).rejects.toMatchObject({
      code: 'invalid_checkpoint',
      message: expect.stringMatching(tensor),
    });
    const { target } = await load(folder, true);
    await target[Symbol.asyncDispose]();
    const out = join(await temporaryFolder(), 'out');
    await expect(runCommand(importCommand(), folder, '--out', out)).rejects.toThrowError(tensor);
    expect(await runCommand(importCommand(), folder, '--out', out, '--allow-unclaimed')).toContain(out);
  });
});

describe('tensors of a decoder', () => {
  const unclaimed = (fixture: string, ...names: readonly string[]) =>
    unclaimedTensors({ names, has: (name) => names.includes(name) }, readModelConfig(join(FIXTURES, fixture)).spec);

  it('are all that stand under its name, and its head', () => {
    const names = ['model.layers.0.self_attn.sinks', 'lm_head.bias', 'model.embed_positions.weight'];
    expect(unclaimed('qwen3-untied', ...names)).toEqual(names);
    expect(unclaimed('qwen3_5-nested', 'model.language_model.layers.0.mlp.extra.weight')).toHaveLength(1);
  });

  it('are not those of other parts, nor what follows from the rest', () => {
    expect(unclaimed('qwen3_5-nested', 'model.visual.blocks.0.norm1.bias', 'mtp.layers.0.mlp.up_proj.weight')).toEqual([]);
    expect(unclaimed('qwen3-untied', 'model.layers.0.self_attn.rotary_emb.inv_freq', 'model.norm.weight')).toEqual([]);
    expect(unclaimed('llama-tied', 'lm_head.weight', 'model.embed_tokens.weight')).toEqual([]);
  });
});
