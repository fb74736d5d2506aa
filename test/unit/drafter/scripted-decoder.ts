import type { DraftDecoder } from '../../../src/drafter/draft-model/draft-decoder.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { ScriptedTarget, type ScriptedTargetOptions } from '../../support/scripted-target.ts';

export const SCRIPTED_VOCAB = 16;

export interface ScriptedDecoder extends DraftDecoder {
  readonly scripted: ScriptedTarget;
}

/** A decoder without a model, which objects to misuse. More caches may be open than a step serves. */
export function scriptedDecoder(seed: number, options: Partial<ScriptedTargetOptions> = {}): ScriptedDecoder {
  const nextLogits = hashedLogits({ vocabSize: SCRIPTED_VOCAB, seed, memory: 6 });
  const scripted = new ScriptedTarget({ vocabSize: SCRIPTED_VOCAB, nextLogits, ...options, maxSequences: 16 });
  const { maxSequences = 4 } = options;
  return {
    scripted,
    maxSequences,
    maxRows: scripted.maxRows,
    cacheBytesPerPosition: 0,
    openCache: () => scripted.openCache(),
    async step(spans, signal) {
      if (spans.length > maxSequences) throw new Error(`Expected at most ${maxSequences} spans, got ${spans.length}`);
      return scripted.step(spans as Parameters<ScriptedTarget['step']>[0], signal);
    },
    warmUp: async () => undefined,
    [Symbol.asyncDispose]: () => scripted[Symbol.asyncDispose](),
  };
}
