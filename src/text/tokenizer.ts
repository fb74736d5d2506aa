/** Text to token ids and back, as the model folder's tokenizer.json says. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { AppError } from '../core/app-error.ts';
import type { TokenId } from '../core/token.ts';
import { byteFallbackBytes } from './byte-fallback.ts';
import { byteLevelBytes } from './byte-level-alphabet.ts';
import { createHuggingFaceTokenizer, type HuggingFaceTokenizer } from './hugging-face-tokenizer.ts';
import { isJsonObject, type JsonObject, parseJsonObject, readOptionalFile, specialTokenText } from './tokenizer-files.ts';
import { withUnicodePatterns } from './unicode-pre-tokenizers.ts';

export interface EncodeOptions {
  /** Add what the post-processor adds, such as a begin-of-sequence token. Special tokens written in the text are recognised either way. */
  readonly addSpecialTokens: boolean;
}

export interface DecodeOptions {
  readonly skipSpecialTokens: boolean;
}

const NO_BYTES = new Uint8Array(0);

/** Made by `loadTokenizer`. Immutable; safe to share between requests. */
export class Tokenizer {
  /** One more than the largest id. A model may have more rows of logits than that. */
  readonly vocabSize: number;
  /** Ids of tokens that tokenizer.json marks as special. */
  readonly specialIds: ReadonlySet<TokenId>;
  /** Ids of the tokens that tokenizer_config.json names; null where it names none. */
  readonly bosId: TokenId | null;
  readonly eosId: TokenId | null;
  /** SHA-256 of tokenizer.json, in hexadecimal. */
  readonly sha256: string;
  /** Whether a token stands for bytes wherever it is (byte-level BPE), so that texts are made by joining bytes. */
  readonly isByteLevel: boolean;
  readonly #tokenizer: HuggingFaceTokenizer;
  readonly #bytes: Uint8Array[] = [];

  /**
   * @param definition the object in tokenizer.json
   * @param config the object in tokenizer_config.json; names the begin and end tokens
   * @param sha256 of tokenizer.json, in hexadecimal
   * @throws AppError `invalid_checkpoint` when the definition cannot be used
   */
  constructor(definition: JsonObject, config: JsonObject, sha256: string) {
    try {
      this.#tokenizer = createHuggingFaceTokenizer(
        { ...definition, pre_tokenizer: withUnicodePatterns(definition['pre_tokenizer']) },
        config,
      );
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new AppError(
        'invalid_checkpoint',
        `expected a usable tokenizer.json, got "${reason}"; use a tokenizer made by Hugging Face's tokenizers`,
        { cause },
      );
    }
    this.vocabSize = largest(this.#tokenizer.get_vocab(true).values()) + 1;
    const added = [...this.#tokenizer.get_added_tokens_decoder()];
    this.specialIds = new Set(added.filter(([, token]) => token.special).map(([id]) => id));
    this.bosId = this.#namedId(config['bos_token']);
    this.eosId = this.#namedId(config['eos_token']);
    this.sha256 = sha256;
    this.isByteLevel = isByteLevelDecoder(definition['decoder']);
  }

  /** @returns ids of the text; a character that the vocabulary cannot express is left out or becomes the unknown token, as tokenizer.json says */
  encode(text: string, { addSpecialTokens }: EncodeOptions): TokenId[] {
    return this.#tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids;
  }

  /**
   * The text of the ids. Bytes that are no UTF-8 become U+FFFD; ids outside the vocabulary are left out. Nothing is tidied up:
   * `clean_up_tokenization_spaces` of tokenizer_config.json would change text that was already streamed.
   */
  decode(ids: readonly TokenId[], { skipSpecialTokens }: DecodeOptions): string {
    const known = ids.filter((id) => this.token(id) !== null && !(skipSpecialTokens && this.specialIds.has(id)));
    if (known.length === 0) return '';
    if (!this.isByteLevel) return this.#tokenizer.decode(known, { clean_up_tokenization_spaces: false });
    return decodeUtf8(joinBytes(known.map((id) => this.tokenBytes(id))));
  }

  /** The vocabulary's own spelling of a token, or null outside the vocabulary. */
  token(id: TokenId): string | null {
    return this.#tokenizer.id_to_token(id) ?? null;
  }

  /** The id of a token by the vocabulary's own spelling, or null. */
  tokenId(token: string): TokenId | null {
    return this.#tokenizer.token_to_id(token) ?? null;
  }

  /**
   * Bytes of a token as it stands within a text, empty outside the vocabulary: `decode` may drop a space at the beginning.
   * A view that must not be changed.
   */
  tokenBytes(id: TokenId): Uint8Array {
    const token = this.token(id);
    if (token === null) return NO_BYTES;
    this.#bytes[id] ??= this.isByteLevel ? byteLevelBytes(token) : byteFallbackBytes(token);
    return this.#bytes[id];
  }

  /** The text of a single token, special ones included; parts of characters are U+FFFD. */
  tokenText(id: TokenId): string {
    return decodeUtf8(this.tokenBytes(id));
  }

  #namedId(name: unknown): TokenId | null {
    const text = specialTokenText(name);
    return text === null ? null : this.tokenId(text);
  }
}

/**
 * Reads `tokenizer.json` and, where there is one, `tokenizer_config.json`.
 * @throws AppError `invalid_checkpoint` when there is no tokenizer.json, or a file cannot be read or used
 */
export async function loadTokenizer(folder: string): Promise<Tokenizer> {
  const path = join(folder, 'tokenizer.json');
  const text = await readOptionalFile(path);
  if (text === null) {
    throw new AppError('invalid_checkpoint', `expected ${path}, got no such file; add the tokenizer.json of the model`);
  }
  const configPath = join(folder, 'tokenizer_config.json');
  const config = parseJsonObject((await readOptionalFile(configPath)) ?? '{}', configPath);
  return new Tokenizer(parseJsonObject(text, path), config, createHash('sha256').update(text).digest('hex'));
}

function isByteLevelDecoder(decoder: unknown): boolean {
  if (!isJsonObject(decoder)) return false;
  if (decoder['type'] === 'ByteLevel') return true;
  const steps = decoder['decoders'];
  return decoder['type'] === 'Sequence' && Array.isArray(steps) && steps.length === 1 && isByteLevelDecoder(steps[0]);
}

function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

function largest(ids: Iterable<number>): number {
  let found = -1;
  for (const id of ids) if (id > found) found = id;
  return found;
}
