/** An index into the target's vocabulary. */
export type TokenId = number;

/** A 0-based place in a sequence, prompt included. */
export type Position = number;
