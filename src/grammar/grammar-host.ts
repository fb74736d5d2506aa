import { AppError } from '../core/app-error.ts';
import type { CompiledStructure } from './compiled-structure.ts';
import type { GrammarLimits } from './grammar-limits.ts';
import type { GrammarVocabulary } from './grammar-messages.ts';
import { GrammarFault, GrammarWorker } from './grammar-worker.ts';

/** Where structures live: a worker, and another one when that has ended. */
export class GrammarHost implements AsyncDisposable {
  readonly #vocabulary: () => GrammarVocabulary;
  readonly #limits: GrammarLimits;
  readonly #compiled = new Map<string, Promise<unknown>>();
  #worker: GrammarWorker | null;
  #disposed = false;

  /** @param worker that has compiled a structure already, with that structure's key; taken over */
  constructor(
    vocabulary: () => GrammarVocabulary,
    limits: GrammarLimits,
    given: { readonly worker: GrammarWorker; readonly key: string } | null = null,
  ) {
    this.#vocabulary = vocabulary;
    this.#limits = limits;
    this.#worker = given?.worker ?? null;
    if (given !== null) this.#compiled.set(given.key, Promise.resolve());
  }

  /**
   * A worker that has compiled the structure.
   * @throws GrammarFault when it cannot be compiled; WorkerLost when the worker ended over another structure
   */
  async workerFor({ key, structure }: Pick<CompiledStructure, 'key' | 'structure'>): Promise<GrammarWorker> {
    let worker = this.#alive();
    const compile = () => {
      const compiling = worker.compile(key, structure, this.#limits.compileMs);
      compiling.catch(() => {});
      this.#compiled.set(key, compiling);
      return compiling;
    };
    try {
      await (this.#compiled.get(key) ?? compile());
    } catch (error) {
      // It has compiled elsewhere before: what the worker lacked may be memory.
      if (!(error instanceof GrammarFault) || error.overrun) throw error;
      worker = this.#alive();
      await (this.#compiled.get(key) ?? compile());
    }
    return worker;
  }

  /** Begins to start a worker, for whoever comes next. */
  start(): void {
    this.#alive();
  }

  forget(key: string): void {
    this.#compiled.delete(key);
    this.#worker?.forget(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await this.#worker?.[Symbol.asyncDispose]();
  }

  #alive(): GrammarWorker {
    if (this.#disposed) throw new AppError('unavailable', 'The structure was put away for others; try again');
    if (this.#worker?.alive) return this.#worker;
    this.#compiled.clear();
    this.#worker = new GrammarWorker(this.#vocabulary());
    return this.#worker;
  }
}
