/** What an engine is made of. */

import type { Target } from '../target/target.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import type { PromptEncoder } from '../text/prompt-encoder.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import type { ShadowOptions } from './admission.ts';
import type { Grammars } from './answer-rules.ts';
import type { LoadDrafter, TryDrafter } from './drafter-exchange.ts';
import type { SplitWeights } from './drafter-split.ts';
import type { SwapRules } from './drafter-swaps.ts';
import type { EngineInfo, EngineObserver } from './engine.ts';
import type { EngineLimits } from './engine-limits.ts';
import type { ServedDrafter } from './served-drafter.ts';

export interface DecodeEngineParts {
  /** Owned by the engine from here on. */
  readonly target: Target;
  /** The default first; empty for plain decoding only. Owned too. */
  readonly drafters: readonly ServedDrafter[];
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
  /** Encodes long prompts. Owned. Default: the tokenizer does. */
  readonly prompts?: PromptEncoder | null;
  /** Owned. Default: structures are refused. */
  readonly grammars?: (Grammars & AsyncDisposable) | null;
  readonly model: string;
  readonly samplingDefaults: EngineInfo['samplingDefaults'];
  /** Requests that may wait for a sequence. */
  readonly maxWaiting: number;
  readonly limits: EngineLimits;
  /** Memory for the caches of running requests: at least what a sequence of full length takes. Default: any amount. */
  readonly cacheBytes?: number;
  readonly observers: readonly EngineObserver[];
  /** Shares of the requests that name no drafter. Default: all get the first one. */
  readonly split?: SplitWeights | null;
  /** Drafters that are scored on a share of the requests. Default: none. */
  readonly shadow?: ShadowOptions | null;
  /** Share of the answers that are decoded again without speculation in idle time. Default 0. */
  readonly auditRate?: number;
  /** Loads a drafter that can take the place of another one. Default: none can. */
  readonly loadDrafter?: LoadDrafter | null;
  /** Makes a draft that nobody uses, as {@link tryDrafter} does. Default: none is made before it serves. */
  readonly tryDrafter?: TryDrafter | null;
  /** Memory for the weights of all drafters, those above included. Default: any amount. */
  readonly drafterBytes?: number;
  readonly swapRules?: SwapRules;
}

export function engineInfo({ target, drafters, chatTemplate, model, samplingDefaults }: DecodeEngineParts): EngineInfo {
  return {
    model,
    created: Math.floor(Date.now() / 1000),
    maxContext: target.facts.maxContext,
    maxSequences: target.maxSequences,
    vocabSize: target.facts.vocabSize,
    drafters: drafters.map(({ name, drafter, draftTokens }) => ({
      name,
      kind: drafter.kind,
      maxDraftTokens: draftTokens,
      synthetic: drafter.synthetic !== undefined,
    })),
    chatVariables: [...chatTemplate.variables],
    samplingDefaults,
  };
}
