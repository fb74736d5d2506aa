/** JSON has no infinity: the value that vLLM writes for a token that has no probability at all. */
const LEAST_LOGPROB = -9999;

export function jsonLogprob(logprob: number): number {
  return Math.max(logprob, LEAST_LOGPROB);
}
