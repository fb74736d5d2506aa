/** One sequence while the target makes it: its tokens, and the rows of every tap as they come. */
import type { SamplingParams } from '../../core/sampling-params.ts';
import type { TokenId } from '../../core/token.ts';
import { chooseToken } from '../../decode/choose-token.ts';
import type { SequenceCache, StepResult, StepSpan, Target } from '../../target/target.ts';
import { encodeRows } from './encode-rows.ts';
import type { Precision } from './manifest-schema.ts';

export interface TurnOptions {
  readonly target: Target;
  /** Names of its tensors, by tap of the target. */
  readonly tensors: ReadonlyMap<number, string>;
  readonly precision: Precision;
  readonly promptTokens: readonly TokenId[];
  readonly sampling: SamplingParams;
  readonly maxTokens: number;
}

export class RecordedTurn {
  readonly tokens: TokenId[];
  readonly promptLength: number;
  /** By tensor: bytes of consecutive rows. */
  readonly chunks: ReadonlyMap<string, Uint8Array[]>;
  readonly #options: TurnOptions;
  readonly #cache: SequenceCache;
  readonly #limit: number;
  readonly #eos: ReadonlySet<TokenId>;
  #ended = false;

  constructor(options: TurnOptions) {
    const { facts } = options.target;
    this.#options = options;
    this.tokens = [...options.promptTokens];
    this.promptLength = options.promptTokens.length;
    this.#limit = Math.min(this.promptLength + options.maxTokens, facts.maxContext);
    this.#eos = new Set(facts.eosTokenIds);
    this.chunks = new Map([...options.tensors.values()].map((name) => [name, []]));
    this.#cache = options.target.openCache();
  }

  /** Known tokens that have no row yet. */
  get missing(): number {
    return this.tokens.length - this.#cache.length;
  }

  /** Every token has its row, the last one included. */
  get done(): boolean {
    return this.#ended && this.missing === 0;
  }

  /** The answer without its end token. */
  get answer(): readonly TokenId[] {
    const answer = this.tokens.slice(this.promptLength);
    return this.#eos.has(answer.at(-1) ?? -1) ? answer.slice(0, -1) : answer;
  }

  span(rows: number): StepSpan {
    const start = this.#cache.length;
    const wanted = !this.#ended && rows === this.missing;
    return { cache: this.#cache, tokens: this.tokens.slice(start, start + rows), logitsFrom: wanted ? rows - 1 : rows };
  }

  /** Takes over the rows of a step that had {@link span}. */
  take(result: StepResult, span: number, rows: number): void {
    const { tensors, precision, target, sampling } = this.#options;
    const first = result.firstRow(span) * target.facts.hiddenSize;
    for (const [tap, name] of tensors) {
      const values = result.taps.get(tap)?.data.subarray(first, first + rows * target.facts.hiddenSize);
      if (values !== undefined) this.chunks.get(name)?.push(encodeRows(values, precision));
    }
    if (this.#ended || this.missing > 0) return;
    const token = chooseToken(result, span, rows - 1, { sampling, processor: null }, this.tokens.length);
    this.tokens.push(token);
    this.#ended = this.#eos.has(token) || this.tokens.length >= this.#limit;
  }

  dispose(): void {
    this.#cache[Symbol.dispose]();
  }
}
