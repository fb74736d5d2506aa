import type { TensorDtype } from './tensor-dtype.ts';

/** What a tensor is, apart from where its bytes are. */
export interface TensorSpec {
  readonly name: string;
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
}

/** Where the bytes of a tensor are: enough to read them, or to name them as external data of a graph. */
export interface TensorLocation {
  /** Absolute path with symbolic links resolved. */
  readonly file: string;
  /** Bytes from the beginning of the file. */
  readonly offset: number;
  readonly byteLength: number;
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
}
