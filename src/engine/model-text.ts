/** What the engine's tokenizer and chat template say. */
import type { TokenId } from '../core/token.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import type { PromptEncoder } from '../text/prompt-encoder.ts';
import type { EncodeOptions, Tokenizer } from '../text/tokenizer.ts';
import type { ChatMessage, ChatOptions, ModelText } from './engine.ts';

export class TokenizerText implements ModelText {
  readonly #tokenizer: Tokenizer;
  readonly #chatTemplate: ChatTemplate;
  readonly #prompts: Pick<PromptEncoder, 'encode'> | null;

  /** @param prompts encodes long texts; null: the tokenizer does */
  constructor(tokenizer: Tokenizer, chatTemplate: ChatTemplate, prompts: Pick<PromptEncoder, 'encode'> | null) {
    this.#tokenizer = tokenizer;
    this.#chatTemplate = chatTemplate;
    this.#prompts = prompts;
  }

  encode(text: string, options: EncodeOptions): readonly TokenId[] {
    return this.#tokenizer.encode(text, options);
  }

  async encodeAll(
    texts: readonly string[],
    options: EncodeOptions,
    signal?: AbortSignal,
  ): Promise<readonly (readonly TokenId[])[]> {
    if (this.#prompts === null) return texts.map((text) => this.encode(text, options));
    return await this.#prompts.encode(texts, options, signal);
  }

  tokenText(token: TokenId): string {
    return this.#tokenizer.tokenText(token);
  }

  tokenBytes(token: TokenId): Uint8Array {
    return this.#tokenizer.tokenBytes(token);
  }

  isSpecial(token: TokenId): boolean {
    return this.#tokenizer.specialIds.has(token);
  }

  tokenSpelling(token: TokenId): string | null {
    return this.#tokenizer.token(token);
  }

  tokenId(spelling: string): TokenId | null {
    return this.#tokenizer.tokenId(spelling);
  }

  decode(tokens: readonly TokenId[], options: { readonly skipSpecialTokens: boolean }): string {
    return this.#tokenizer.decode(tokens, options);
  }

  renderChat(messages: readonly ChatMessage[], options?: ChatOptions): string {
    const { addGenerationPrompt = true, continueFinalMessage = false, tools = null, variables = {} } = options ?? {};
    const shown = tools === null ? {} : { tools };
    return this.#chatTemplate.render(messages, { addGenerationPrompt, continueFinalMessage, variables, ...shown });
  }
}
