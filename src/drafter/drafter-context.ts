import type { WeightFormat } from '../checkpoint/weight-plan.ts';
import type { Device } from '../onnx/device.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import type { BorrowedTarget } from './borrowed-target.ts';
import type { DraftDecoder } from './draft-model/draft-decoder.ts';
import type { Drafter } from './drafter.ts';

/** What a drafter is made with. One that computes with plain JavaScript needs none of it but the target's facts. */
export interface DrafterContext {
  readonly target: BorrowedTarget;
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  /** How matrices are to be stored, as the target's are. */
  readonly format: WeightFormat;
  /** Folder for converted weights; null: the user's cache folder. */
  readonly cacheDir: string | null;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
  /** Loads another model of the target's kind, with as many sequences, rows and positions, for a drafter that is one itself. */
  readonly loadDecoder: (folder: string) => Promise<DraftDecoder>;
}

/** A drafter that was chosen but not yet loaded: its target has to be made for the taps first. */
export interface DrafterSource {
  /** Name in responses, logs and metrics. */
  readonly name: string;
  /** Target layers that it wants to see, as {@link Drafter.taps}. */
  readonly taps: readonly number[];
  /** Where its weights lie; absent for one that has none. */
  readonly folder?: string;
  /** About what its weights take of the memory in a format, told before they are loaded; absent for one that has none. */
  weightBytes?(format: WeightFormat): Promise<number>;
  load(context: DrafterContext): Promise<Drafter>;
}

/** What a user's own drafter module exports. */
export interface DrafterModule {
  /** Target layers that it wants to see, as {@link Drafter.taps}; none by default. */
  readonly taps?: readonly number[];
  createDrafter(context: DrafterContext): Promise<Drafter> | Drafter;
}
