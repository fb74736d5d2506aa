/** Copies of a bfloat16 drafter folder with something changed, made without training. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PREDECESSORS, SELECTOR_PROJECTION, SUCCESSORS } from '../../src/drafter/dflash/candidate-lattice.ts';

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** A drafter that can be changed in place. */
export class VariedDrafter {
  config: Record<string, unknown> & { readonly dflash_config: Record<string, unknown> };
  readonly #header: Record<string, Entry>;
  #data: Buffer;

  constructor(folder: string) {
    this.config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
    const file = readFileSync(join(folder, 'model.safetensors'));
    const start = 8 + Number(file.readBigUInt64LE(0));
    const { __metadata__, ...entries } = JSON.parse(file.subarray(8, start).toString());
    this.#header = entries;
    this.#data = Buffer.from(file.subarray(start));
  }

  /** The tensor's bfloat16 values as a view. */
  bits(name: string): { readonly values: Uint16Array; readonly shape: readonly number[] } {
    const { data_offsets, shape, dtype } = this.#header[name] as Entry;
    if (dtype !== 'BF16') throw new Error(`expected bfloat16, got ${dtype}`);
    const bytes = this.#data.subarray(...data_offsets);
    return { values: new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2), shape };
  }

  /** Puts the columns of `fc` that take each tap into another order: place i gets those of tap `order[i]`; null: zeros. */
  arrangeTaps(order: readonly (number | null)[]): void {
    const { values, shape } = this.bits('fc.weight');
    const [rows, columns] = shape as [number, number];
    const width = columns / order.length;
    const before = values.slice();
    for (let row = 0; row < rows; row++) {
      for (const [place, tap] of order.entries()) {
        const to = row * columns + place * width;
        if (tap === null) values.fill(0, to, to + width);
        else values.set(before.subarray(row * columns + tap * width, row * columns + (tap + 1) * width), to);
      }
    }
  }

  /** Every value of a tensor under a function. */
  map(name: string, change: (value: number) => number): void {
    const { values } = this.bits(name);
    const float = new Float32Array(1);
    const bits = new Uint32Array(float.buffer);
    for (let i = 0; i < values.length; i++) {
      bits[0] = (values[i] as number) << 16;
      float[0] = change(float[0] as number);
      values[i] = (bits[0] as number) >>> 16;
    }
  }

  add(name: string, dtype: string, shape: readonly number[], bytes: Uint8Array): void {
    const start = this.#data.byteLength;
    this.#header[name] = { dtype, shape, data_offsets: [start, start + bytes.byteLength] };
    this.#data = Buffer.concat([this.#data, bytes]);
  }

  /** The same drafter in speculators' layout, which counts layers from the embedding. */
  declareAsSpeculators(keys: Record<string, unknown> = {}): void {
    const { dflash_config, block_size, architectures, num_target_layers: _, ...layers } = this.config;
    const { mask_token_id, target_layer_ids } = dflash_config as { mask_token_id: number; target_layer_ids: number[] };
    const config: Record<string, unknown> = {
      architectures,
      speculators_model_type: 'dflash',
      speculators_version: '0.9.0',
      block_size,
      mask_token_id,
      aux_hidden_state_layer_ids: target_layer_ids.map((id) => id + 1),
      draft_vocab_size: layers['vocab_size'],
      tie_word_embeddings: false,
      transformer_layer_config: layers,
      ...keys,
    };
    this.config = config as VariedDrafter['config'];
  }

  /**
   * The same drafter as one of DFlash 2, which drafts what it did: its convolutions pass each row as it is, and its selector adds
   * nothing to the scores of the candidates.
   */
  declareAsDflash2(): void {
    const { hidden_size, vocab_size, num_hidden_layers } = this.config as unknown as Record<string, number>;
    const [hidden, vocab, layers] = [hidden_size as number, vocab_size as number, num_hidden_layers as number];
    const [width, group, rank] = [2, 16, 8];
    const one = 0x3f80;
    const tensor = (name: string, shape: readonly number[], value: (at: number) => number) => {
      const size = shape.reduce((product, length) => product * length, 1);
      this.add(name, 'BF16', shape, new Uint8Array(Uint16Array.from({ length: size }, (_, at) => value(at)).buffer));
    };
    for (let layer = 0; layer < layers; layer++) {
      for (const part of ['attention_conv', 'mlp_conv']) {
        const base = `layers.${layer}.${part}`;
        tensor(`${base}.base_kernel`, [2, width, hidden], (at) => (at % (width * hidden) < hidden ? one : 0));
        tensor(`${base}.kernel_projection.weight`, [(2 * width * hidden) / group, hidden], () => 0);
      }
    }
    tensor(SELECTOR_PROJECTION, [rank, hidden], () => 0);
    tensor(PREDECESSORS, [vocab, rank], () => one);
    tensor(SUCCESSORS, [vocab, rank], () => one);
    this.config['architectures'] = ['DFlash2DraftModel'];
    Object.assign(this.config.dflash_config, {
      conv_kernel_size: width,
      conv_group_size: group,
      selector_rank: rank,
      selector_top_k: 4,
    });
  }

  get tensorNames(): readonly string[] {
    return Object.keys(this.#header);
  }

  write(folder: string): string {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'config.json'), JSON.stringify(this.config));
    const header = Buffer.from(JSON.stringify(this.#header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.byteLength));
    writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, header, this.#data]));
    return folder;
  }
}
