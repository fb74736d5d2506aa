/**
 * What importing a large checkpoint takes in memory and time. It writes a synthetic model of BF16 weights of the given size
 * to a temporary folder, imports it in a process of its own, and removes both.
 *
 *   npx tsx bench/import-memory.ts [--gigabytes 2] [--weights int8]
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { exportWeights } from '../src/checkpoint/export-weights.ts';
import type { WeightFormat } from '../src/checkpoint/weight-plan.ts';
import { openFolder } from '../src/cli/inspect-folder.ts';

const { values: flags } = parseArgs({
  options: {
    gigabytes: { type: 'string', default: '2' },
    weights: { type: 'string', default: 'int8' },
    /** Of the process that imports: where from and where to. */
    from: { type: 'string' },
    to: { type: 'string' },
  },
});

const SHAPE = { vocab_size: 32_000, hidden_size: 2048, intermediate_size: 8192, heads: 32, kvHeads: 8, headDim: 64 };

if (flags.from !== undefined && flags.to !== undefined) await importOnce(flags.from, flags.to);
else await measure();

/** Prints what this process took more than it had before. */
async function importOnce(from: string, to: string): Promise<void> {
  const { checkpoint, plan } = await openFolder(from);
  const before = process.resourceUsage().maxRSS;
  const started = performance.now();
  await exportWeights({ checkpoint, plan, format: flags.weights as WeightFormat, outDir: to });
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(JSON.stringify({ baselineKiB: before, peakKiB: process.resourceUsage().maxRSS, seconds }));
}

async function measure(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'blockdraft-import-'));
  try {
    const model = join(folder, 'model');
    const bytes = await writeModel(model, Number(flags.gigabytes) * 1e9);
    const words = [
      '--import',
      'tsx',
      import.meta.filename,
      '--weights',
      flags.weights,
      '--from',
      model,
      '--to',
      join(folder, 'out'),
    ];
    const { stdout } = await promisify(execFile)(process.execPath, words);
    const { baselineKiB, peakKiB, seconds } = JSON.parse(stdout) as Record<string, number>;
    const mega = (kibibytes: number) => ((kibibytes * 1024) / 1e6).toFixed(0);
    console.log(
      `${(bytes / 1e9).toFixed(2)} GB of BF16 to ${flags.weights}: ${seconds!.toFixed(1)} s, ${(seconds! / (bytes / 1e9)).toFixed(1)} s per GB; ` +
        `memory ${mega(baselineKiB!)} MB before, ${mega(peakKiB!)} MB at most, ${mega(peakKiB! - baselineKiB!)} MB more`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** As many layers as come closest to the size. @returns bytes of the weights */
async function writeModel(folder: string, wantedBytes: number): Promise<number> {
  const { vocab_size, hidden_size: hidden, intermediate_size: intermediate, heads, kvHeads, headDim } = SHAPE;
  const layerShapes: Record<string, readonly number[]> = {
    'input_layernorm.weight': [hidden],
    'post_attention_layernorm.weight': [hidden],
    'self_attn.q_proj.weight': [heads * headDim, hidden],
    'self_attn.k_proj.weight': [kvHeads * headDim, hidden],
    'self_attn.v_proj.weight': [kvHeads * headDim, hidden],
    'self_attn.o_proj.weight': [hidden, heads * headDim],
    'mlp.gate_proj.weight': [intermediate, hidden],
    'mlp.up_proj.weight': [intermediate, hidden],
    'mlp.down_proj.weight': [hidden, intermediate],
  };
  const bytesOf = (shape: readonly number[]) => 2 * shape.reduce((product, size) => product * size, 1);
  const layerBytes = Object.values(layerShapes).reduce((sum, shape) => sum + bytesOf(shape), 0);
  const layers = Math.max(1, Math.round((wantedBytes - 2 * bytesOf([vocab_size, hidden])) / layerBytes));
  const shapes = new Map<string, readonly number[]>([
    ['model.embed_tokens.weight', [vocab_size, hidden]],
    ['lm_head.weight', [vocab_size, hidden]],
    ['model.norm.weight', [hidden]],
  ]);
  for (let layer = 0; layer < layers; layer++) {
    for (const [name, shape] of Object.entries(layerShapes)) shapes.set(`model.layers.${layer}.${name}`, shape);
  }
  let end = 0;
  const entries = [...shapes].map(([name, shape]) => {
    const begin = end;
    end += bytesOf(shape);
    return [name, { dtype: 'BF16', shape, data_offsets: [begin, end] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  await mkdir(folder);
  await writeFile(join(folder, 'config.json'), JSON.stringify(configOf(layers)));
  const file = join(folder, 'model.safetensors');
  await using handle = await open(file, 'w');
  await handle.writev([length, header]);
  const PIECE = 1 << 24;
  const values = Uint16Array.from({ length: PIECE / 2 }, (_, i) => 0x3c00 | (Math.imul(i, 0x9e37) & 0x80ff));
  for (let left = end; left > 0; left -= PIECE) await handle.write(new Uint8Array(values.buffer, 0, Math.min(left, PIECE)));
  return (await stat(file)).size;
}

function configOf(layers: number): Record<string, unknown> {
  return {
    model_type: 'llama',
    vocab_size: SHAPE.vocab_size,
    hidden_size: SHAPE.hidden_size,
    intermediate_size: SHAPE.intermediate_size,
    num_hidden_layers: layers,
    num_attention_heads: SHAPE.heads,
    num_key_value_heads: SHAPE.kvHeads,
    head_dim: SHAPE.headDim,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    max_position_embeddings: 4096,
    tie_word_embeddings: false,
  };
}
