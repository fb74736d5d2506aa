/** What structured output may take of the machine: schemas, patterns and grammars come from whoever calls. */
export interface GrammarLimits {
  /** Milliseconds in which a structure must compile. */
  readonly compileMs: number;
  /** Milliseconds in which the masks of one step must be there: thousands of times what they take, as a machine may be busy. */
  readonly stepMs: number;
  /** A structure that took longer to compile does so beside the others only, never where others' masks come from. */
  readonly sharedCompileMs: number;
  /** Structures of that kind at a time; each keeps a worker of its own. */
  readonly ownWorkers: number;
  /** Requests that may wait for their structures to be compiled. */
  readonly maxWaiting: number;
  /** Memory of a worker's engine. */
  readonly memoryBytes: number;
  /** Compiled structures that are kept for the next request. */
  readonly cacheEntries: number;
  /** The text of a schema, a pattern, a grammar, a tag, or of all choices together. */
  readonly maxBytes: number;
  readonly maxChoices: number;
  /** Levels of brackets in a schema, a pattern or a grammar. */
  readonly maxDepth: number;
  /** The largest count in `{m,n}`, and of characters and items in a schema. */
  readonly maxRepetition: number;
}

export const DEFAULT_GRAMMAR_LIMITS: GrammarLimits = {
  compileMs: 5000,
  stepMs: 2000,
  sharedCompileMs: 250,
  ownWorkers: 2,
  maxWaiting: 32,
  memoryBytes: 512 * 2 ** 20,
  cacheEntries: 64,
  maxBytes: 64 * 2 ** 10,
  maxChoices: 1024,
  maxDepth: 64,
  maxRepetition: 10_000,
};
