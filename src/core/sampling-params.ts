/** How the next token is chosen from the target's logits. */
export interface SamplingParams {
  /** 0 means greedy: the largest logit, the smallest id among equals. */
  readonly temperature: number;
  /** Nucleus: keep a token while the probability mass before it is below this. 1 keeps all. */
  readonly topP: number;
  /** Keep the k largest logits and everything equal to the k-th. 0 keeps all. */
  readonly topK: number;
  /** Keep tokens whose probability is at least this share of the largest one. 0 keeps all. */
  readonly minP: number;
  /** Key of the counter-based generator; the same seed gives the same answer with any drafter and none. */
  readonly seed: bigint;
}

export const GREEDY: SamplingParams = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 0n };
