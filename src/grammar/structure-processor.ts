import { AppError } from '../core/app-error.ts';
import { DisposedError } from '../core/disposed-error.ts';
import type { TokenId } from '../core/token.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';
import type { CompiledStructure } from './compiled-structure.ts';
import { GrammarFault, type GrammarWorker, type LookResult, WorkerLost } from './grammar-worker.ts';
import { refusal } from './refusal.ts';

export interface StructureProcessorOptions {
  readonly compiled: CompiledStructure;
  /** Told apart from others by it. */
  readonly matcher: number;
  readonly vocabSize: number;
  readonly stopIds: ReadonlySet<TokenId>;
  readonly stepMs: number;
  /** Shared by all who follow the structure; a structure with a fault is not tried again. */
  readonly health: { fault: AppError | null };
  readonly onClose: () => void;
}

/** How often a step may be asked for again because a worker ended over another structure. */
const MAX_LOST = 5;

/** What the worker says of the tokens behind the history, as far as a draft goes. */
interface Ahead {
  readonly draft: readonly TokenId[];
  readonly result: LookResult;
}

/**
 * Keeps an answer within a structure. The tokens are kept here and the worker is told of them with the next question, so
 * that another worker can take over from any step.
 */
export class StructureProcessor implements LogitsProcessor {
  readonly #options: StructureProcessorOptions;
  readonly #history: TokenId[] = [];
  #worker: GrammarWorker | null = null;
  /** Tokens that the worker knows. */
  #told = 0;
  #ahead: Ahead | null = null;
  #masks: Int32Array | null = null;
  /** Length of the history that the first row of masks follows. */
  #masksFrom = 0;
  #ended = false;
  #disposed = false;

  constructor(options: StructureProcessorOptions) {
    this.#options = options;
  }

  /** With the first end-of-sequence token: it is allowed where the structure may end, and nothing else follows it. */
  get ended(): boolean {
    return this.#ended;
  }

  /** @throws AppError as {@link prepare} */
  admit(draft: readonly TokenId[]): Promise<number> {
    return this.#asking(async () => {
      const ahead = await this.#look(draft);
      const allowed = await ahead.result.allowed;
      // The worker goes on to the masks, which are wanted next.
      this.#ahead = { draft: draft.slice(0, allowed), result: ahead.result };
      return allowed;
    });
  }

  /** @throws AppError `invalid_request` when the structure takes too long, or more memory than it may */
  async prepare(draft: readonly TokenId[]): Promise<void> {
    this.#masks = await this.#asking(async () => {
      const known = this.#ahead;
      this.#ahead = null;
      const serves = known !== null && draft.every((token, index) => token === known.draft[index]);
      return await (serves ? known : await this.#look(draft)).result.masks;
    });
    this.#masksFrom = this.#history.length;
  }

  process(logits: Float32Array): void {
    const words = Math.ceil(this.#options.vocabSize / 32);
    const row = this.#history.length - this.#masksFrom;
    if (this.#masks === null || (row + 1) * words > this.#masks.length) {
      throw new AppError('internal', `expected masks for row ${row} of the step, got none; prepare was not called for it`);
    }
    for (let word = 0; word < words; word++) {
      const bits = this.#masks[row * words + word]!;
      const first = word * 32;
      if (bits === -1) continue;
      if (bits === 0) logits.fill(Number.NEGATIVE_INFINITY, first, first + 32);
      else for (let bit = 0; bit < 32; bit++) if (!((bits >>> bit) & 1)) logits[first + bit] = Number.NEGATIVE_INFINITY;
    }
  }

  push(token: TokenId): void {
    this.#history.push(token);
    this.#ahead = null;
    this.#ended ||= this.#options.stopIds.has(token);
  }

  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#worker?.close(this.#options.matcher);
    this.#options.onClose();
  }

  async #look(draft: readonly TokenId[]): Promise<Ahead> {
    const { compiled, matcher, stepMs } = this.#options;
    const worker = await compiled.host.workerFor(compiled);
    if (this.#disposed) throw new DisposedError('A structure processor');
    if (worker !== this.#worker) {
      this.#worker = worker;
      this.#told = 0;
    }
    const tokens = this.#history.slice(this.#told);
    this.#told = this.#history.length;
    return { draft, result: worker.look({ matcher, key: compiled.key, tokens, draft }, stepMs) };
  }

  async #asking<T>(ask: () => Promise<T>): Promise<T> {
    const { health } = this.#options;
    for (let lost = 0; ; lost++) {
      if (health.fault !== null) throw health.fault;
      try {
        return await ask();
      } catch (error) {
        if (error instanceof WorkerLost) {
          if (lost < MAX_LOST) continue;
          throw new AppError('unavailable', 'The structures of others took the worker too often; try again', { cause: error });
        }
        if (!(error instanceof GrammarFault)) throw error;
        health.fault = refusal('a structure whose masks can be computed', `one where ${error.message}`, 'make it simpler');
        throw health.fault;
      }
    }
  }
}
