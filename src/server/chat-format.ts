/** The shape of `/v1/chat/completions`. */
import { randomUUID } from 'node:crypto';
import type { TokensEvent } from '../core/decode-event.ts';
import type { TokenId } from '../core/token.ts';
import type { TokenLogprobs } from '../core/token-logprobs.ts';
import type { Engine } from '../engine/engine.ts';
import type { AnswerFinish, AnswerFormat, ChoiceWriter, EncodedPrompt } from './answer-format.ts';
import type { ExpectedReasoning } from './chat/reasoning.ts';
import { CLOSE_REASONING, OPEN_REASONING, ReasoningSplitter, type SplitText } from './chat/reasoning-splitter.ts';
import { type AnswerPiece, CLOSE_CALL, OPEN_CALL, ToolCallParser } from './chat/tool-call-parser.ts';
import { chatLogprobs } from './logprobs/chat-logprobs.ts';
import { promptLogprobsField } from './logprobs/prompt-logprobs.ts';
import { type TokenSpeller, tokenSpeller } from './logprobs/token-speller.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';

export interface ChatFormatOptions {
  readonly engine: Pick<Engine, 'text'>;
  readonly params: GenerationParams;
  /** Null: answers are not parted. */
  readonly reasoning: ExpectedReasoning | null;
  readonly includeReasoning: boolean;
  /** Tool calls that an answer may have; 0: none are looked for. */
  readonly maxCalls: number;
}

export function chatFormat(options: ChatFormatOptions): AnswerFormat {
  return {
    idPrefix: 'chatcmpl-',
    object: 'chat.completion',
    chunkObject: 'chat.completion.chunk',
    promptParam: 'messages',
    promptLogprobs: options.params.details.promptLogprobs,
    shownTokens: tagsOf(options).flatMap((tag) => options.engine.text.tokenId(tag) ?? []),
    writer: (index, prompt) => new ChatWriter(index, prompt, options),
  };
}

/** Marks that part an answer. Models may have them as special tokens, whose text would be left out. */
function tagsOf({ reasoning, maxCalls }: ChatFormatOptions): readonly string[] {
  return [...(reasoning === null ? [] : [OPEN_REASONING, CLOSE_REASONING]), ...(maxCalls === 0 ? [] : [OPEN_CALL, CLOSE_CALL])];
}

interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; arguments: string };
}

/** A streamed answer is written piece by piece; a whole one is what its pieces join to. */
class ChatWriter implements ChoiceWriter {
  readonly #index: number;
  readonly #prompt: EncodedPrompt;
  readonly #options: ChatFormatOptions;
  readonly #speller: TokenSpeller;
  readonly #splitter: ReasoningSplitter | null;
  readonly #parser: ToolCallParser | null;
  #reasoning = '';
  #content = '';
  readonly #calls: ToolCall[] = [];
  readonly #tokens: TokenId[] = [];
  readonly #logprobs: TokenLogprobs[] = [];
  #promptLogprobs: readonly TokenLogprobs[] = [];

  constructor(index: number, prompt: EncodedPrompt, options: ChatFormatOptions) {
    const { engine, params, reasoning, maxCalls } = options;
    this.#index = index;
    this.#prompt = prompt;
    this.#options = options;
    this.#speller = tokenSpeller(engine.text, params.details.tokensAsIds);
    this.#splitter = reasoning === null ? null : new ReasoningSplitter(reasoning.start, reasoning.tags);
    this.#parser = maxCalls === 0 ? null : new ToolCallParser({ maxCalls });
  }

  get reasoningTokens(): number | null {
    return this.#splitter?.reasoningTokens ?? null;
  }

  opening(): object {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  delta({ text, tokens, logprobs = [], promptLogprobs }: TokensEvent): readonly object[] {
    if (promptLogprobs !== undefined) this.#promptLogprobs = promptLogprobs;
    const deltas = this.#write(this.#splitter?.push(tokens, text) ?? { reasoning: '', content: text });
    const { stream, details } = this.#options.params;
    if (!stream) {
      this.#tokens.push(...tokens);
      this.#logprobs.push(...logprobs);
      return [];
    }
    const isTold = tokens.length > 0 && (details.logprobs !== null || details.tokenIds);
    // A round whose text is all held back says nothing yet, unless its tokens are to be told.
    if (deltas.length === 0 && isTold) deltas.push({});
    return deltas.map((delta, i) => (i === 0 && isTold ? this.#chunk(delta, tokens, logprobs) : this.#chunk(delta)));
  }

  final(finish: AnswerFinish): readonly object[] {
    const chunks = this.#end().map((delta) => this.#chunk(delta));
    return [...chunks, { ...this.#chunk({}), ...this.#finish(finish) }];
  }

  whole(finish: AnswerFinish): object {
    this.#end();
    return {
      index: this.#index,
      message: {
        role: 'assistant',
        content: this.#content === '' && this.#calls.length > 0 ? null : this.#content,
        refusal: null,
        ...(this.#reasoning === '' ? {} : reasoningFields(this.#reasoning)),
        ...(this.#calls.length === 0 ? {} : { tool_calls: this.#calls }),
      },
      ...this.#details(this.#tokens, this.#logprobs),
      ...this.#finish(finish),
    };
  }

  answerFields(): object {
    const { promptLogprobs, tokenIds } = this.#options.params.details;
    return {
      ...(promptLogprobs === null ? {} : { prompt_logprobs: promptLogprobsField(this.#promptLogprobs, this.#speller) }),
      ...(tokenIds ? { prompt_token_ids: this.#prompt.tokens } : {}),
    };
  }

  /** What a piece of the answer adds to the message, as deltas. */
  #write({ reasoning, content }: SplitText): object[] {
    const deltas: object[] = [];
    if (reasoning !== '' && this.#options.includeReasoning) {
      this.#reasoning += reasoning;
      deltas.push(reasoningFields(reasoning));
    }
    return [...deltas, ...this.#writePieces(this.#parser?.push(content) ?? textPieces(content))];
  }

  /** What the end of the answer adds. */
  #end(): object[] {
    const deltas = this.#write(this.#splitter?.finish() ?? { reasoning: '', content: '' });
    return [...deltas, ...this.#writePieces(this.#parser?.finish() ?? [])];
  }

  #writePieces(pieces: readonly AnswerPiece[]): object[] {
    return pieces.map((piece) => this.#writePiece(piece));
  }

  #writePiece(piece: AnswerPiece): object {
    if (piece.kind === 'content') {
      this.#content += piece.text;
      return { content: piece.text };
    }
    const { index } = piece;
    if (piece.kind === 'call') {
      const call: ToolCall = {
        id: `call_${randomUUID().replaceAll('-', '')}`,
        type: 'function',
        function: { name: piece.name, arguments: '' },
      };
      this.#calls.push(call);
      return { tool_calls: [{ index, ...call, function: { ...call.function } }] };
    }
    this.#calls[index]!.function.arguments += piece.text;
    return { tool_calls: [{ index, function: { arguments: piece.text } }] };
  }

  #finish({ reason, stopReason }: AnswerFinish): object {
    const isCall = this.#calls.length > 0 && !this.#parser?.isCallOpen;
    return { finish_reason: reason === 'stop' && isCall ? 'tool_calls' : reason, stop_reason: stopReason };
  }

  #chunk(delta: object, tokens: readonly TokenId[] = [], logprobs: readonly TokenLogprobs[] = []): object {
    return { index: this.#index, delta, ...this.#details(tokens, logprobs), finish_reason: null };
  }

  #details(tokens: readonly TokenId[], logprobs: readonly TokenLogprobs[]): object {
    const { details } = this.#options.params;
    const isTold = details.logprobs !== null && tokens.length > 0;
    return {
      logprobs: isTold ? chatLogprobs(logprobs, this.#speller) : null,
      ...(details.tokenIds && tokens.length > 0 ? { token_ids: tokens } : {}),
    };
  }
}

/** Under vLLM's name, and under the one of DeepSeek and others. */
function reasoningFields(text: string): object {
  return { reasoning: text, reasoning_content: text };
}

function textPieces(text: string): readonly AnswerPiece[] {
  return text === '' ? [] : [{ kind: 'content', text }];
}
