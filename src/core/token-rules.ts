/** What a request rules of the tokens of its answer, beside how they are drawn. */
import type { TokenId } from './token.ts';

/** Applied to the logits in this order, which is vLLM's, ahead of the temperature; with all at their defaults nothing changes. */
export interface TokenRules {
  /** What the answer must match, from its first token or from the end of its reasoning. Null: anything. */
  readonly structure: AnswerStructure | null;
  /** The reasoning that the structure does not apply to; null: it applies from the first token. */
  readonly structureAfter: ReasoningTokens | null;
  /** Only these may be emitted; end-of-sequence ones are among them only if they are named. Null: all may. */
  readonly allowedTokenIds: readonly TokenId[] | null;
  /** Sequences of tokens that may not occur in the answer. */
  readonly badWords: readonly (readonly TokenId[])[];
  /**
   * Before as many were emitted, end-of-sequence and stop tokens are forbidden, also where the former would not end the
   * answer, and a stop string does not end it.
   */
  readonly minTokens: number;
  /** Added to logits; -100 to 100. */
  readonly logitBias: ReadonlyMap<TokenId, number>;
  /** Divides positive and multiplies other logits of tokens in the prompt or the answer, above 0; 1 is none. */
  readonly repetitionPenalty: number;
  /** Subtracted once for every occurrence in the answer, -2 to 2; 0 is none. */
  readonly frequencyPenalty: number;
  /** Subtracted once when the token is in the answer, -2 to 2; 0 is none. */
  readonly presencePenalty: number;
}

/** The tokens around a model's reasoning. */
export interface ReasoningTokens {
  /** Opens it, as the first token of the answer; an answer with another first token has none. Null: the prompt has opened it. */
  readonly begin: TokenId | null;
  /** Ends it: the structure applies from the next token. */
  readonly end: TokenId;
}

/** A language that an answer has to belong to. */
export type AnswerStructure =
  /** Any JSON object. */
  | { readonly kind: 'json-object' }
  /** JSON by a JSON schema, which is given as text. */
  | { readonly kind: 'json-schema'; readonly schema: string }
  | { readonly kind: 'regex'; readonly pattern: string }
  /** One of these texts. */
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  /** An EBNF grammar whose first rule is `root`. */
  | { readonly kind: 'grammar'; readonly ebnf: string }
  /** XGrammar's structural tags, as JSON text: free text with tagged parts that follow a schema. */
  | { readonly kind: 'structural-tag'; readonly tag: string };

export const NO_RULES: TokenRules = {
  structure: null,
  structureAfter: null,
  allowedTokenIds: null,
  badWords: [],
  minTokens: 0,
  logitBias: new Map(),
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
};
