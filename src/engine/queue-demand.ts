/** What requests ask of the queue. */
import type { TokenId } from '../core/token.ts';
import type { QueuedRequest } from './engine.ts';

/** What is free for those who wait. */
export interface FreeRoom {
  readonly sequences: number;
  /** Of the memory for caches. */
  readonly bytes: number;
}

export interface QueueDemand {
  readonly requests: number;
  /** Of their prompts; a prompt that several requests share counts once where it is computed once. */
  readonly tokens: number;
}

/**
 * What still waits when all have started that can: they come in order, and none passes one that memory is too short for.
 * @param bytesOf memory that a request reserves
 * @param underWay prompts that are computed in any case; null where equal prompts are computed each for itself
 */
export function queueDemand(
  requests: readonly QueuedRequest[],
  free: FreeRoom,
  bytesOf: (request: QueuedRequest) => number,
  underWay: readonly QueuedRequest[] | null,
): QueueDemand {
  let started = 0;
  for (let { sequences, bytes } = free; sequences > 0 && started < requests.length; sequences--) {
    bytes -= bytesOf(requests[started]!);
    if (bytes < 0) break;
    started++;
  }
  const waiting = requests.slice(started).map(promptOf);
  if (underWay === null) return { requests: waiting.length, tokens: totalLength(waiting) };
  // Choices of a request have one prompt, not equal ones.
  const shared = new Set([...underWay, ...requests.slice(0, started)].map(promptOf));
  const others = new Set(waiting.filter((prompt) => !shared.has(prompt)));
  return { requests: waiting.length, tokens: totalLength(others) };
}

function promptOf({ promptTokens }: QueuedRequest): readonly TokenId[] {
  return promptTokens;
}

function totalLength(prompts: Iterable<readonly TokenId[]>): number {
  let tokens = 0;
  for (const prompt of prompts) tokens += prompt.length;
  return tokens;
}
