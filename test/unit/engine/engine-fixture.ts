/** Engines over a scripted target that writes known texts, with a byte-level tokenizer. */

import { onTestFinished } from 'vitest';
import type { DecodeEvent, FinishEvent } from '../../../src/core/decode-event.ts';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { TokenId } from '../../../src/core/token.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { Drafter } from '../../../src/drafter/drafter.ts';
import { DecodeEngine } from '../../../src/engine/decode-engine.ts';
import type { EngineObserver, GenerateRequest, StartReport, StepReport } from '../../../src/engine/engine.ts';
import { DEFAULT_ENGINE_LIMITS, type EngineLimits } from '../../../src/engine/engine-limits.ts';
import type { DecodeEngineParts } from '../../../src/engine/engine-parts.ts';
import { ChatTemplate } from '../../../src/text/chat-template.ts';
import { Tokenizer } from '../../../src/text/tokenizer.ts';
import { CheckedDrafter } from '../../support/checked-drafter.ts';
import { within } from '../../support/labelled-timeout.ts';
import { OracleDrafter } from '../../support/oracle-drafter.ts';
import { nextToken, scriptedAnswers } from '../../support/scripted-logits.ts';
import { type NextLogits, ScriptedTarget, type ScriptedTargetOptions } from '../../support/scripted-target.ts';
import { byteLevelDefinition } from '../text/tokenizer-definitions.ts';

export const TOKENIZER = new Tokenizer(byteLevelDefinition(), {}, '');
export const VOCAB = TOKENIZER.vocabSize;
export const EOS = TOKENIZER.tokenId('<|end|>') as TokenId;
const FILLER = TOKENIZER.tokenId('.') as TokenId;

export function encode(text: string): TokenId[] {
  return TOKENIZER.encode(text, { addSpecialTokens: false });
}

/** A target that answers texts with texts; dots follow. */
export function answersTexts(answers: Readonly<Record<string, string>>): NextLogits {
  const pairs = Object.entries(answers).map(([prompt, answer]) => [encode(prompt), encode(answer)] as const);
  return scriptedAnswers(VOCAB, pairs, FILLER);
}

/** Knows everything that the target is going to say, greedily. */
export function oracle(nextLogits: NextLogits, maxDraftTokens = 4): Drafter {
  return new OracleDrafter({ next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB, maxDraftTokens });
}

export interface EngineOptions extends Partial<Omit<ScriptedTargetOptions, 'vocabSize' | 'nextLogits'>> {
  readonly nextLogits: NextLogits;
  /** Null: plain decoding. Default: the oracle. */
  readonly drafter?: Drafter | null;
  readonly draftTokens?: number;
  readonly maxWaiting?: number;
  readonly limits?: Partial<EngineLimits>;
  readonly cacheBytes?: number;
  /** Further drafters, each under its kind. */
  readonly more?: readonly Drafter[];
  readonly parts?: Partial<DecodeEngineParts>;
}

export class Recorder implements EngineObserver {
  readonly starts: StartReport[] = [];
  readonly steps: StepReport[] = [];
  readonly finishes: { readonly request: GenerateRequest; readonly finish: FinishEvent }[] = [];

  readonly quarantines: [drafter: string, reason: string][] = [];

  onQuarantine(drafter: string, reason: string): void {
    this.quarantines.push([drafter, reason]);
  }

  onStart(_request: GenerateRequest, start: StartReport): void {
    this.starts.push(start);
  }

  onStep(step: StepReport): void {
    this.steps.push(step);
  }

  onFinish(request: GenerateRequest, finish: FinishEvent): void {
    this.finishes.push({ request, finish });
  }
}

/** Disposed of after the test, which must have left nothing open. */
export function openEngine({
  nextLogits,
  drafter = oracle(nextLogits),
  draftTokens,
  maxWaiting = 64,
  limits = {},
  cacheBytes = 1e9,
  more = [],
  parts = {},
  ...options
}: EngineOptions) {
  const target = new ScriptedTarget({
    vocabSize: VOCAB,
    nextLogits,
    eosTokenIds: [EOS],
    ...options,
    async duringStep(step, signal) {
      // As a real step does, this one leaves room for what else is going on.
      await new Promise((resolve) => setImmediate(resolve));
      await options.duringStep?.(step, signal);
    },
  });
  const recorder = new Recorder();
  const checked = drafter && new CheckedDrafter(drafter);
  const others = more.map((one) => new CheckedDrafter(one));
  const all = checked === null ? others : [checked, ...others];
  const engine = new DecodeEngine({
    target,
    drafters: all.map((one) => ({
      name: one.kind,
      drafter: one,
      draftTokens: draftTokens ?? one.maxDraftTokens,
      lengths: FIXED_LENGTH,
    })),
    tokenizer: TOKENIZER,
    chatTemplate: new ChatTemplate({ templates: new Map([['default', '{{ messages[0].content }}']]), specialTokens: {} }),
    model: 'scripted',
    samplingDefaults: {},
    maxWaiting,
    cacheBytes,
    limits: { ...DEFAULT_ENGINE_LIMITS, prefixCacheBytes: 0, ...limits },
    observers: [recorder],
    ...parts,
  });
  onTestFinished(async () => {
    await within('the engine’s end', engine[Symbol.asyncDispose]());
    if (target.openCaches !== 0) throw new Error(`${target.openCaches} caches were left open`);
    const misuses = all.flatMap((one) => one.misuses);
    if (misuses.length > 0) throw new Error(misuses.join('; '));
  });
  return { engine, target, recorder, drafter: checked, others };
}

let requests = 0;

export function request(prompt: string | readonly TokenId[], options: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    id: `request-${++requests}`,
    promptTokens: typeof prompt === 'string' ? encode(prompt) : prompt,
    sampling: GREEDY,
    maxTokens: null,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: false,
    skipSpecialTokens: true,
    drafter: null,
    draftTokens: null,
    ...options,
  };
}

export interface Answer {
  readonly tokens: readonly TokenId[];
  readonly text: string;
  readonly finish: FinishEvent;
  /** Text of each event. */
  readonly pieces: readonly string[];
}

export async function answerOf(events: AsyncIterable<DecodeEvent>): Promise<Answer> {
  const tokens: TokenId[] = [];
  const pieces: string[] = [];
  const finishes: FinishEvent[] = [];
  const read = async () => {
    for await (const event of events) {
      if (event.type === 'finish') finishes.push(event);
      else {
        tokens.push(...event.tokens);
        pieces.push(event.text);
      }
    }
  };
  await within('an answer', read());
  const [finish] = finishes;
  if (finish === undefined || finishes.length > 1) throw new Error(`Expected one finish, got ${finishes.length}`);
  return { tokens, text: pieces.join(''), finish, pieces };
}

export const NEVER = new AbortController().signal;
