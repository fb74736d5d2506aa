/** From the rules of a request to what enforces them on its sequence. */
import { AppError } from '../core/app-error.ts';
import { NO_RULES, type TokenRules } from '../core/token-rules.ts';
import { AfterReasoning } from '../grammar/after-reasoning.ts';
import type { CompiledStructure } from '../grammar/compiled-structure.ts';
import type { GrammarService } from '../grammar/grammar-service.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';
import { ProcessorChain } from '../sampling/processor-chain.ts';
import { AllowedTokens } from '../sampling/processors/allowed-tokens.ts';
import { BadWords } from '../sampling/processors/bad-words.ts';
import { LogitBias } from '../sampling/processors/logit-bias.ts';
import { MinTokens } from '../sampling/processors/min-tokens.ts';
import { OccurrencePenalties } from '../sampling/processors/occurrence-penalties.ts';
import type { TargetFacts } from '../target/target.ts';
import type { GenerateRequest } from './engine.ts';

/** Makes the processor of one sequence; null when there is nothing to enforce. */
export type MakeProcessor = () => LogitsProcessor | null;

export const NO_PROCESSOR: MakeProcessor = () => null;

/** The rules of a request, ready for its sequence; what they need is kept until they are disposed of. */
export interface CompiledRules extends Disposable {
  readonly makeProcessor: MakeProcessor;
}

/** What keeps answers within structures. */
export type Grammars = Pick<GrammarService, 'compile' | 'open'>;

const MOST_BIAS = 100;
const MOST_PENALTY = 2;

export class AnswerRules {
  readonly #facts: Pick<TargetFacts, 'vocabSize' | 'eosTokenIds'>;
  readonly #grammars: Grammars | null;

  /** @param grammars null: structures are refused */
  constructor(facts: Pick<TargetFacts, 'vocabSize' | 'eosTokenIds'>, grammars: Grammars | null) {
    this.#facts = facts;
    this.#grammars = grammars;
  }

  /** @throws AppError `invalid_request` when the rules cannot be enforced, with the request's field as `details.param`; as a grammar service throws */
  async check(rules: TokenRules, signal?: AbortSignal): Promise<void> {
    this.#checkValues(rules);
    (await this.#compileStructure(rules, signal))?.[Symbol.dispose]();
  }

  /** @throws AppError as {@link check} */
  async compile(request: GenerateRequest): Promise<CompiledRules> {
    const { rules = NO_RULES } = request;
    this.#checkValues(rules);
    const compiled = await this.#compileStructure(rules);
    const makers = this.#makers(request, rules, compiled);
    return {
      makeProcessor: makers.length === 0 ? NO_PROCESSOR : () => new ProcessorChain(makers.map((make) => make())),
      [Symbol.dispose]: () => compiled?.[Symbol.dispose](),
    };
  }

  #checkValues(rules: TokenRules): void {
    checkNumbers(rules);
    this.#checkIds('allowed_token_ids', rules.allowedTokenIds ?? []);
    this.#checkIds('bad_words', rules.badWords.flat());
    this.#checkIds('logit_bias', [...rules.logitBias.keys()]);
    if (rules.allowedTokenIds?.length === 0) throw refusal('allowed_token_ids', 'at least one token id', 'none');
    if (rules.badWords.some((word) => word.length === 0))
      throw refusal('bad_words', 'words of at least one token', 'an empty one');
  }

  async #compileStructure({ structure }: TokenRules, signal?: AbortSignal): Promise<CompiledStructure | null> {
    if (structure === null) return null;
    if (this.#grammars === null) throw refusal('structure', 'nothing, as no structures are enforced here,', structure.kind);
    return await this.#grammars.compile(structure, signal);
  }

  #openStructure(compiled: CompiledStructure, { structureAfter }: TokenRules): LogitsProcessor {
    const processor = this.#grammars!.open(compiled);
    return structureAfter === null ? processor : new AfterReasoning(processor, structureAfter);
  }

  /** In the order of application. */
  #makers(
    { promptTokens, stopTokenIds }: GenerateRequest,
    rules: TokenRules,
    compiled: CompiledStructure | null,
  ): (() => LogitsProcessor)[] {
    const { allowedTokenIds, badWords, minTokens, logitBias } = rules;
    const penalties = {
      repetition: rules.repetitionPenalty,
      frequency: rules.frequencyPenalty,
      presence: rules.presencePenalty,
    };
    const penalizes = penalties.repetition !== 1 || penalties.frequency !== 0 || penalties.presence !== 0;
    const ends = [...this.#facts.eosTokenIds, ...stopTokenIds];
    return [
      ...(compiled === null ? [] : [() => this.#openStructure(compiled, rules)]),
      ...(allowedTokenIds === null ? [] : [() => new AllowedTokens(allowedTokenIds)]),
      ...(badWords.length === 0 ? [] : [() => new BadWords(badWords)]),
      ...(minTokens === 0 ? [] : [() => new MinTokens(minTokens, ends)]),
      ...(logitBias.size === 0 ? [] : [() => new LogitBias(logitBias)]),
      ...(penalizes ? [() => new OccurrencePenalties(penalties, promptTokens)] : []),
    ];
  }

  #checkIds(param: string, ids: readonly number[]): void {
    const { vocabSize } = this.#facts;
    const unknown = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
    if (unknown !== undefined) throw refusal(param, `token ids of 0 to ${vocabSize - 1}`, String(unknown));
  }
}

function checkNumbers({ minTokens, logitBias, ...rules }: TokenRules): void {
  if (!Number.isInteger(minTokens) || minTokens < 0) throw refusal('min_tokens', 'a whole number from 0', String(minTokens));
  if (!(rules.repetitionPenalty > 0 && Number.isFinite(rules.repetitionPenalty))) {
    throw refusal('repetition_penalty', 'a number above 0', String(rules.repetitionPenalty));
  }
  const bounded = [
    ['frequency_penalty', rules.frequencyPenalty, MOST_PENALTY],
    ['presence_penalty', rules.presencePenalty, MOST_PENALTY],
    ...[...logitBias.values()].map((bias) => ['logit_bias', bias, MOST_BIAS] as const),
  ] as const;
  for (const [param, value, most] of bounded) {
    if (!(Math.abs(value) <= most)) throw refusal(param, `numbers of -${most} to ${most}`, String(value));
  }
}

function refusal(param: string, expected: string, got: string): AppError {
  return new AppError('invalid_request', `Expected ${expected} in ${param}, got ${got}`, { details: { param } });
}
