/** Sequences that are put where a test wants them, without a target. */

import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { TokenId } from '../../../src/core/token.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import { Sequence, type SequenceOptions } from '../../../src/decode/sequence.ts';
import type { StopRule } from '../../../src/decode/stop-rule.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import type { SequenceCache } from '../../../src/target/target.ts';

export const NEVER_STOPS: StopRule = { push: () => null };

export function stopsAt(...tokens: readonly TokenId[]): StopRule {
  return { push: (token) => (tokens.includes(token) ? { reason: 'stop', stopReason: token } : null) };
}

/** A cache whose length a test sets. */
export class CountedCache implements SequenceCache {
  readonly capacity = 100;
  length = 0;
  disposals = 0;

  truncate(length: number): void {
    this.length = length;
  }

  copyFrom(_source: SequenceCache, length: number): void {
    this.length = length;
  }

  [Symbol.dispose](): void {
    this.disposals++;
  }
}

export interface PlacedOptions extends Partial<Omit<SequenceOptions, 'promptTokens' | 'cache'>> {
  readonly prompt?: number;
  /** Tokens emitted already; with none, nothing of the prompt is cached. */
  readonly emitted?: number;
  readonly cached?: number;
  /** Length of the longest draft wanted; null: without a drafter. */
  readonly limit?: number | null;
}

export function placed({ prompt = 3, emitted = 0, cached, limit = 4, ...options }: PlacedOptions = {}) {
  const cache = new CountedCache();
  const drafter = new NgramDrafter();
  const sequence = new Sequence({
    promptTokens: Array.from({ length: prompt }, (_, i) => i),
    sampling: GREEDY,
    stopRule: NEVER_STOPS,
    maxTokens: 50,
    limitedBy: 'max-tokens',
    cache,
    drafting: limit === null ? 'no-drafter' : { drafter, state: drafter.open(), limit, lengths: FIXED_LENGTH },
    ...options,
  });
  for (let token = 0; token < emitted; token++) sequence.emit(token);
  cache.length = cached ?? (emitted === 0 ? 0 : sequence.tokens.length - 1);
  return { sequence, cache };
}
