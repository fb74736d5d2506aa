/** What the service and a grammar worker say to each other. */

import type { TokenId } from '../core/token.ts';
import type { AnswerStructure } from '../core/token-rules.ts';

/** What a worker is started with. */
export interface GrammarVocabulary {
  /** By token id; empty for tokens that no structure may contain. */
  readonly tokens: readonly string[];
  /** How tokens spell bytes: GPT-2's alphabet, or `<0x0A>` and `▁`. */
  readonly spelling: 'byte_level' | 'byte_fallback';
  /** Entries of a row of logits; at least as many as tokens. */
  readonly vocabSize: number;
  /** End-of-sequence tokens, allowed where a structure may end. */
  readonly stopIds: readonly TokenId[];
  readonly memoryBytes: number;
}

export type GrammarRequest =
  | { readonly type: 'compile'; readonly id: number; readonly key: string; readonly structure: AnswerStructure }
  | { readonly type: 'forget'; readonly key: string }
  /** Follows `tokens`, then looks along the draft: `counted` and `masked` come back, in this order. */
  | {
      readonly type: 'look';
      readonly id: number;
      readonly matcher: number;
      readonly key: string;
      readonly tokens: readonly TokenId[];
      readonly draft: readonly TokenId[];
    }
  | { readonly type: 'close'; readonly matcher: number };

export type GrammarReply =
  | { readonly type: 'ready' }
  /** With the memory that the engine has now. */
  | { readonly type: 'compiled'; readonly id: number; readonly ms: number; readonly bytes: number }
  /** Draft tokens that the structure allows. */
  | { readonly type: 'counted'; readonly id: number; readonly allowed: number }
  /** [allowed + 1, ceil(vocabSize / 32)] bits, lowest first, of the tokens that may follow the first 0, 1, … draft tokens. */
  | { readonly type: 'masked'; readonly id: number; readonly masks: Int32Array }
  /** The engine has given up and knows nothing any more. */
  | { readonly type: 'broken'; readonly message: string };
