/**
 * Keeps answers within structures, by XGrammar in worker threads: `compile` a structure once for each request, `open` a processor
 * of the compiled structure for each of its sequences, and dispose of both. Nothing is started before the first structure.
 */
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import { DisposedError } from '../core/disposed-error.ts';
import { orAbandon } from '../core/or-abandon.ts';
import type { TokenId } from '../core/token.ts';
import type { AnswerStructure } from '../core/token-rules.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';
import type { CompiledStructure } from './compiled-structure.ts';
import { enforceableStructure } from './enforceable-structure.ts';
import { GrammarHost } from './grammar-host.ts';
import { DEFAULT_GRAMMAR_LIMITS, type GrammarLimits } from './grammar-limits.ts';
import { type GrammarTokenizer, grammarVocabulary } from './grammar-vocabulary.ts';
import { GrammarFault, GrammarWorker, WorkerLost } from './grammar-worker.ts';
import { refusal } from './refusal.ts';
import { StructureProcessor } from './structure-processor.ts';

export interface GrammarServiceOptions {
  readonly tokenizer: GrammarTokenizer;
  /** Entries of a row of the target's logits. */
  readonly vocabSize: number;
  /** End-of-sequence tokens, at least one: answers end with one of them. */
  readonly eosTokenIds: readonly TokenId[];
  /** What is left out is as in {@link DEFAULT_GRAMMAR_LIMITS}. */
  readonly limits?: Partial<GrammarLimits>;
}

/** A structure that was asked for, and who uses it. */
interface Entry {
  readonly key: string;
  readonly compiled: Promise<GrammarHost>;
  /** Callers that wait for it or hold it, and processors that are open. */
  users: number;
  /** Of this structure alone; null when it shares one, or is not compiled yet. */
  ownHost: GrammarHost | null;
  /** Why it is refused since it was compiled. */
  fault: AppError | null;
}

/**
 * A structure is compiled on trial first, in a worker where nobody waits for masks and which ends when it takes too long, and
 * then among the others, or left where it is when that took long. A worker that ends over one structure is replaced, and the
 * answers that it served go on in the new one.
 */
export class GrammarService implements AsyncDisposable {
  readonly #options: GrammarServiceOptions;
  readonly #limits: GrammarLimits;
  readonly #shared: GrammarHost;
  readonly #stopIds: ReadonlySet<TokenId>;
  /** By key, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #ending = new Set<Promise<void>>();
  #vocabulary: ReturnType<typeof grammarVocabulary> | null = null;
  #trial: GrammarWorker | null = null;
  /** What the trial worker compiles. */
  #trying: Entry | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #matchers = 0;
  #disposed = false;

  constructor(options: GrammarServiceOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_GRAMMAR_LIMITS, ...options.limits };
    this.#stopIds = new Set(options.eosTokenIds);
    this.#shared = new GrammarHost(this.#getVocabulary, this.#limits);
  }

  /**
   * @throws AppError `invalid_request` with `details.param` `structure` when it is no such structure, uses what cannot be
   *   enforced, or takes too long; `overloaded` when too many wait; AbortedError
   */
  async compile(structure: AnswerStructure, signal?: AbortSignal): Promise<CompiledStructure> {
    if (this.#disposed) throw new DisposedError('The grammar service');
    if (this.#stopIds.size === 0)
      throw refusal('a model with an end-of-sequence token, to end the structure with', 'one without');
    const enforced = enforceableStructure(structure, this.#limits);
    const key = JSON.stringify(enforced);
    const entry = this.#entries.get(key) ?? this.#newEntry(key, enforced);
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (entry.fault !== null) throw entry.fault;
    const release = this.#hold(entry);
    try {
      const { compiled } = entry;
      const host = await (signal === undefined ? compiled : orAbandon('Compiling a structure', compiled, signal));
      return { structure: enforced, key, host, [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** A processor for one sequence, which ends the answer with an end-of-sequence token. */
  open(compiled: CompiledStructure): LogitsProcessor {
    if (this.#disposed) throw new DisposedError('The grammar service');
    const entry = this.#entries.get(compiled.key);
    const onClose = entry === undefined ? () => {} : this.#hold(entry);
    return new StructureProcessor({
      compiled,
      matcher: this.#matchers++,
      vocabSize: this.#options.vocabSize,
      stopIds: this.#stopIds,
      stepMs: this.#limits.stepMs,
      health: entry ?? { fault: null },
      onClose,
    });
  }

  /** Ends all workers; processors that are still open fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    for (const entry of this.#entries.values()) if (entry.ownHost !== null) this.#disposeLater(entry.ownHost);
    if (this.#trial !== null) this.#disposeLater(this.#trial);
    this.#disposeLater(this.#shared);
    await this.#turn;
    await Promise.all(this.#ending);
  }

  /** @returns lets it go again, once */
  #hold(entry: Entry): () => void {
    entry.users++;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      entry.users--;
      if (entry.users === 0 && entry === this.#trying) this.#giveUpTrial(entry);
      this.#evict();
    };
  }

  /** Nobody waits for it any more, and others may. */
  #giveUpTrial(entry: Entry): void {
    this.#forget(entry);
    const trial = this.#trial;
    this.#trial = null;
    if (trial !== null) this.#disposeLater(trial);
  }

  #newEntry(key: string, structure: AnswerStructure): Entry {
    if (this.#waiting >= this.#limits.maxWaiting) {
      throw new AppError(
        'overloaded',
        `Expected at most ${this.#limits.maxWaiting} structures that wait to be compiled, got more; try again later`,
      );
    }
    this.#waiting++;
    const compiled = this.#turn.then(() => this.#compile(entry, key, structure));
    const entry: Entry = { key, compiled, users: 0, ownHost: null, fault: null };
    this.#entries.set(key, entry);
    this.#turn = compiled
      .catch((error: unknown) => {
        // What is wrong with the structure stays wrong; anything else may be better next time.
        if (!(error instanceof AppError && error.code === 'invalid_request')) this.#forget(entry);
      })
      .finally(() => {
        this.#waiting--;
        this.#evict();
      });
    return entry;
  }

  async #compile(entry: Entry, key: string, structure: AnswerStructure): Promise<GrammarHost> {
    if (entry.users === 0) {
      this.#forget(entry);
      throw new AbortedError('Compiling a structure', undefined);
    }
    const { compileMs, sharedCompileMs, memoryBytes } = this.#limits;
    const trial = this.#aliveTrial();
    try {
      this.#trying = entry;
      const { ms, bytes } = await trial.compile(key, structure, compileMs).finally(() => {
        this.#trying = null;
      });
      let host = this.#shared;
      if (ms > sharedCompileMs) {
        this.#makeRoomForOwnHost();
        this.#trial = null;
        host = new GrammarHost(this.#getVocabulary, this.#limits, { worker: trial, key });
        entry.ownHost = host;
        if (this.#disposed) this.#disposeLater(host);
      } else if (bytes > memoryBytes / 2) {
        // Its memory never shrinks, and must not be what the next structure fails for.
        this.#trial = null;
        this.#disposeLater(trial);
      } else {
        trial.forget(key);
      }
      await host.workerFor({ key, structure });
      return host;
    } catch (error) {
      if (this.#disposed) throw new DisposedError('The grammar service');
      if (error instanceof GrammarFault) {
        throw error.overrun
          ? refusal('a structure that compiles in time', `one where ${error.message}`, 'make it simpler')
          : refusal(`a ${NAMES[structure.kind]} that can be enforced`, `"${error.message}"`);
      }
      if (error instanceof WorkerLost) throw new AppError('unavailable', 'The structure could not be compiled; try again');
      throw error;
    }
  }

  #aliveTrial(): GrammarWorker {
    if (this.#disposed) throw new DisposedError('The grammar service');
    if (this.#trial?.alive) return this.#trial;
    this.#trial = new GrammarWorker(this.#getVocabulary());
    this.#shared.start();
    return this.#trial;
  }

  /** @throws AppError `overloaded` */
  #makeRoomForOwnHost(): void {
    const owning = [...this.#entries].filter(([, { ownHost }]) => ownHost !== null);
    if (owning.length < this.#limits.ownWorkers) return;
    const idle = owning.find(([, { users }]) => users === 0);
    if (idle === undefined) {
      throw new AppError(
        'overloaded',
        `Expected at most ${owning.length} structures at a time that take long to compile, got one more; try again later`,
      );
    }
    this.#drop(...idle);
  }

  #evict(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= this.#limits.cacheEntries) return;
      if (entry.users === 0) this.#drop(key, entry);
    }
  }

  #forget(entry: Entry): void {
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
  }

  #drop(key: string, { ownHost }: Entry): void {
    this.#entries.delete(key);
    if (ownHost === null) this.#shared.forget(key);
    else this.#disposeLater(ownHost);
  }

  #disposeLater(gone: AsyncDisposable): void {
    const ending = Promise.resolve(gone[Symbol.asyncDispose]()).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  readonly #getVocabulary = () => {
    const { tokenizer, vocabSize, eosTokenIds } = this.#options;
    this.#vocabulary ??= grammarVocabulary(tokenizer, vocabSize, eosTokenIds, this.#limits.memoryBytes);
    return this.#vocabulary;
  };
}

const NAMES: Readonly<Record<AnswerStructure['kind'], string>> = {
  'json-object': 'JSON object',
  'json-schema': 'JSON schema',
  regex: 'regular expression',
  choice: 'choice',
  grammar: 'grammar',
  'structural-tag': 'structural tag',
};
