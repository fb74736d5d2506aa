/** What a request of a measurement was, and what came of it. Times in milliseconds. */
export interface RequestRecord {
  /** Id of its prompt. */
  readonly prompt: string;
  readonly category: string;
  /** Null when it was answered. */
  readonly error: string | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** From sending it to the first text. */
  readonly ttft: number;
  /** (end - first text) / (tokens - 1); null for fewer than two tokens. */
  readonly tpot: number | null;
  readonly e2el: number;
  /** Between deliveries: with speculation a delivery has several tokens. */
  readonly itl: readonly number[];
  /** Of each token behind the first delivery: the gap before its own / the tokens in it. Empty where the server counts none. */
  readonly itlPerToken: readonly number[];
  /** Digest of the text: equal ones are equal texts. */
  readonly text: string;
  readonly speculation: SpeculationCounts | null;
}

/** Counts of the rounds with a draft. */
export interface SpeculationCounts {
  readonly drafts: number;
  readonly draftTokens: number;
  readonly acceptedTokens: number;
  /** By place in the draft, from 0: rounds that accepted it, and rounds whose draft had it. */
  readonly acceptedPerPosition: readonly number[];
  readonly proposedPerPosition: readonly number[];
}
