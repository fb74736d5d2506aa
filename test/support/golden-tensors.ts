import { readFileSync } from 'node:fs';

export interface GoldenTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** All tensors of a safetensors file, which are of float32. Reads by the format's description, not with the code under test. */
export function readGoldenTensors(file: string): ReadonlyMap<string, GoldenTensor> {
  const bytes = readFileSync(file);
  const headerLength = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + headerLength)) as Record<
    string,
    { readonly dtype: string; readonly shape: readonly number[]; readonly data_offsets: readonly [number, number] }
  >;
  const { __metadata__: _, ...tensors } = header;
  return new Map(
    Object.entries(tensors).map(([name, { dtype, shape, data_offsets }]) => {
      if (dtype !== 'F32') throw new Error(`Expected ${name} to be of F32, got ${dtype}`);
      const [begin, end] = data_offsets;
      const data = new Float32Array((end - begin) / 4);
      for (let i = 0; i < data.length; i++) data[i] = bytes.readFloatLE(8 + headerLength + begin + 4 * i);
      return [name, { shape, data }];
    }),
  );
}
