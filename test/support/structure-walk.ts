import type { TokenId } from '../../src/core/token.ts';
import type { LogitsProcessor } from '../../src/sampling/logits-processor.ts';

/** The tokens that a processor allows next; it is ready for this row. */
export function allowedNow(processor: LogitsProcessor, vocabSize: number): TokenId[] {
  const logits = new Float32Array(vocabSize);
  processor.process(logits);
  return [...logits.keys()].filter((id) => logits[id] === 0);
}

/** Numbers from 0 to 1 that are the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** How a walk likes tokens: those with the largest wish among the allowed ones are taken. */
export type Wish = (history: readonly TokenId[], token: TokenId) => number;

function choose(processor: LogitsProcessor, vocabSize: number, history: readonly TokenId[], wish: Wish): TokenId {
  const allowed = allowedNow(processor, vocabSize);
  if (allowed.length === 0) throw new Error(`nothing may follow ${history.join(' ')}`);
  return allowed.reduce((best, id) => (wish(history, id) > wish(history, best) ? id : best));
}

/** Token by token, until the processor says that the answer has ended or as many as asked for are there. */
export async function walk(processor: LogitsProcessor, vocabSize: number, wish: Wish, maxTokens: number): Promise<TokenId[]> {
  const history: TokenId[] = [];
  while (history.length < maxTokens && !processor.ended) {
    await processor.prepare?.([]);
    const token = choose(processor, vocabSize, history, wish);
    processor.push(token);
    history.push(token);
  }
  return history;
}

/** The same by rounds as decoding has them: a draft is cut, verified, and followed as far as the choices agree. */
export async function walkWithDrafts(
  processor: LogitsProcessor,
  vocabSize: number,
  wish: Wish,
  maxTokens: number,
  drafter: (history: readonly TokenId[]) => readonly TokenId[],
): Promise<TokenId[]> {
  const history: TokenId[] = [];
  for (let round = 0; history.length < maxTokens && !processor.ended; round++) {
    const draft = drafter(history);
    const admitted = draft.slice(0, await processor.admit?.(draft));
    await processor.prepare?.(admitted);
    // Now and then a step fails, and the round begins again with another draft.
    if (round % 5 === 4) continue;
    for (let row = 0; row <= admitted.length && history.length < maxTokens && !processor.ended; row++) {
      const token = choose(processor, vocabSize, history, wish);
      processor.push(token);
      history.push(token);
      if (token !== admitted[row]) break;
    }
  }
  return history;
}
