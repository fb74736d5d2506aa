/** The shape of `/v1/completions`. */
import type { TokensEvent } from '../core/decode-event.ts';
import type { TokenLogprobs } from '../core/token-logprobs.ts';
import type { Engine } from '../engine/engine.ts';
import type { AnswerFinish, AnswerFormat, ChoiceWriter, EncodedPrompt } from './answer-format.ts';
import { type CompletionLogprobs, completionLogprobs, type ToldTokens } from './logprobs/completion-logprobs.ts';
import { promptLogprobsField } from './logprobs/prompt-logprobs.ts';
import { TextOffsets } from './logprobs/text-offsets.ts';
import { type TokenSpeller, tokenSpeller } from './logprobs/token-speller.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';

export interface CompletionFormatOptions {
  readonly engine: Pick<Engine, 'text'>;
  readonly params: GenerationParams;
  /** The text begins with the prompt's. */
  readonly echo: boolean;
}

export function completionFormat(options: CompletionFormatOptions): AnswerFormat {
  const { details } = options.params;
  return {
    idPrefix: 'cmpl-',
    object: 'text_completion',
    chunkObject: 'text_completion',
    promptParam: 'prompt',
    shownTokens: [],
    promptLogprobs: largest(details.promptLogprobs, options.echo ? details.logprobs : null),
    writer: (index, prompt) => new CompletionWriter(index, prompt, options),
  };
}

/** What one or several events add to a choice; without logprobs and offsets unless they are asked for. */
interface Piece extends ToldTokens {
  readonly text: string;
}

const NOTHING: Piece = { text: '', tokens: [], logprobs: [], offsets: [] };

/** A streamed answer is written event by event, a whole one at its end; no token is written twice. */
class CompletionWriter implements ChoiceWriter {
  readonly reasoningTokens = null;
  readonly #index: number;
  readonly #prompt: EncodedPrompt;
  readonly #options: CompletionFormatOptions;
  readonly #speller: TokenSpeller;
  readonly #offsets: TextOffsets;
  readonly #pieces: Piece[] = [];
  #promptLogprobs: readonly TokenLogprobs[] = [];
  #hasBegun = false;

  constructor(index: number, prompt: EncodedPrompt, options: CompletionFormatOptions) {
    const { engine, params } = options;
    this.#index = index;
    this.#prompt = prompt;
    this.#options = options;
    this.#speller = tokenSpeller(engine.text, params.details.tokensAsIds);
    this.#offsets = new TextOffsets(engine.text, params.skipSpecialTokens);
  }

  opening(): null {
    return null;
  }

  delta(event: TokensEvent): readonly object[] {
    const isFirst = !this.#hasBegun;
    const piece = this.#take(event);
    const { stream, details } = this.#options.params;
    if (!stream) {
      this.#pieces.push(piece);
      return [];
    }
    // A round whose text is all held back says nothing yet, unless its tokens are to be told.
    if (piece.text === '' && (piece.tokens.length === 0 || (details.logprobs === null && !details.tokenIds))) return [];
    return [this.#choice(piece, null, isFirst)];
  }

  final(finish: AnswerFinish): readonly object[] {
    return [this.#choice(NOTHING, finish, false)];
  }

  whole(finish: AnswerFinish): object {
    return this.#choice(joined(this.#pieces), finish, true);
  }

  answerFields(): object {
    return {};
  }

  #take({ text, tokens, logprobs = [], promptLogprobs }: TokensEvent): Piece {
    const { params, echo } = this.#options;
    if (promptLogprobs !== undefined) this.#promptLogprobs = promptLogprobs;
    const echoed = echo && !this.#hasBegun ? this.#echoed() : NOTHING;
    this.#hasBegun = true;
    if (params.maxTokens === 0) return echoed;
    const offsets = params.details.logprobs === null ? [] : this.#offsets.emitted(tokens);
    return joined([echoed, { text, tokens, logprobs, offsets }]);
  }

  #echoed(): Piece {
    const { engine, params } = this.#options;
    const { tokens } = this.#prompt;
    const text = this.#prompt.text ?? engine.text.decode(tokens, { skipSpecialTokens: params.skipSpecialTokens });
    const { logprobs } = params.details;
    if (logprobs === null) return { ...NOTHING, text, tokens };
    return {
      text,
      tokens,
      logprobs: [null, ...this.#promptLogprobs.map((told) => withTop(told, logprobs))],
      offsets: this.#offsets.echoed(tokens, text),
    };
  }

  #choice(piece: Piece, finish: AnswerFinish | null, isFirst: boolean): object {
    const { promptLogprobs, tokenIds } = this.#options.params.details;
    return {
      index: this.#index,
      text: piece.text,
      logprobs: this.#logprobsOf(piece),
      finish_reason: finish?.reason ?? null,
      stop_reason: finish?.stopReason ?? null,
      ...(promptLogprobs === null || !isFirst
        ? {}
        : {
            prompt_logprobs: promptLogprobsField(
              this.#promptLogprobs.map((told) => withTop(told, promptLogprobs)),
              this.#speller,
            ),
          }),
      ...(tokenIds ? { token_ids: piece.tokens } : {}),
      ...(tokenIds && isFirst ? { prompt_token_ids: this.#prompt.tokens } : {}),
    };
  }

  #logprobsOf(piece: Piece): CompletionLogprobs | null {
    if (this.#options.params.details.logprobs === null || piece.tokens.length === 0) return null;
    return completionLogprobs(piece, this.#speller);
  }
}

function joined(pieces: readonly Piece[]): Piece {
  return {
    text: pieces.map(({ text }) => text).join(''),
    tokens: pieces.flatMap(({ tokens }) => tokens),
    logprobs: pieces.flatMap(({ logprobs }) => logprobs),
    offsets: pieces.flatMap(({ offsets }) => offsets),
  };
}

/** Prompt tokens are told with as many rivals as either field wants. */
function withTop(told: TokenLogprobs, count: number): TokenLogprobs {
  return { ...told, top: told.top.slice(0, count) };
}

function largest(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}
