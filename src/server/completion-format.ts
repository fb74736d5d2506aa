/** The shape of `/v1/completions`. */
import type { TokensEvent } from '../core/decode-event.ts';
import type { TokenId } from '../core/token.ts';
import type { TokenLogprobs } from '../core/token-logprobs.ts';
import type { Engine } from '../engine/engine.ts';
import type { AnswerFinish, AnswerFormat, ChoiceWriter, EncodedPrompt } from './answer-format.ts';
import { type CompletionLogprobs, CompletionLogprobWriter } from './logprobs/completion-logprobs.ts';
import { promptLogprobsField } from './logprobs/prompt-logprobs.ts';
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
    promptLogprobs: largest(details.promptLogprobs, options.echo ? details.logprobs : null),
    writer: (index, prompt) => new CompletionWriter(index, prompt, options),
  };
}

/** What one or several events add to a choice. */
interface Piece {
  readonly text: string;
  readonly tokens: readonly TokenId[];
  /** One for each token, where asked for. */
  readonly logprobs: readonly (TokenLogprobs | null)[];
}

const NOTHING: Piece = { text: '', tokens: [], logprobs: [] };

/** A streamed answer is written event by event, a whole one at its end; no token is written twice. */
class CompletionWriter implements ChoiceWriter {
  readonly reasoningTokens = null;
  readonly #index: number;
  readonly #prompt: EncodedPrompt;
  readonly #options: CompletionFormatOptions;
  readonly #speller: TokenSpeller;
  readonly #logprobs: CompletionLogprobWriter;
  readonly #pieces: Piece[] = [];
  #promptLogprobs: readonly TokenLogprobs[] = [];
  #hasBegun = false;

  constructor(index: number, prompt: EncodedPrompt, options: CompletionFormatOptions) {
    const { engine, params } = options;
    const { skipSpecialTokens } = params;
    this.#index = index;
    this.#prompt = prompt;
    this.#options = options;
    this.#speller = tokenSpeller(engine.text, params.details.tokensAsIds);
    this.#logprobs = new CompletionLogprobWriter(
      this.#speller,
      (token) => engine.text.decode([token], { skipSpecialTokens }) !== '',
    );
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
    const emitted = params.maxTokens === 0 ? NOTHING : { text, tokens, logprobs };
    const isEchoed = echo && !this.#hasBegun;
    this.#hasBegun = true;
    return isEchoed ? joined([this.#echoed(), emitted]) : emitted;
  }

  #echoed(): Piece {
    const { engine, params } = this.#options;
    const { text, tokens } = this.#prompt;
    const { logprobs } = params.details;
    return {
      text: text ?? engine.text.decode(tokens, { skipSpecialTokens: params.skipSpecialTokens }),
      tokens,
      logprobs: logprobs === null ? [] : [null, ...this.#promptLogprobs.map((told) => withTop(told, logprobs))],
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

  #logprobsOf({ tokens, logprobs }: Piece): CompletionLogprobs | null {
    if (this.#options.params.details.logprobs === null || tokens.length === 0) return null;
    return this.#logprobs.write(tokens, logprobs);
  }
}

function joined(pieces: readonly Piece[]): Piece {
  return {
    text: pieces.map(({ text }) => text).join(''),
    tokens: pieces.flatMap(({ tokens }) => tokens),
    logprobs: pieces.flatMap(({ logprobs }) => logprobs),
  };
}

/** Prompt tokens are told with as many rivals as either field wants. */
function withTop(told: TokenLogprobs, count: number): TokenLogprobs {
  return { ...told, top: told.top.slice(0, count) };
}

function largest(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}
