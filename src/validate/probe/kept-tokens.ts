import type { TokenId } from '../../core/token.ts';

/** Rows of a drafter's head and the tokens that they stand for, where it chooses among some of the target's only. */
export class KeptTokens {
  /** Target ids by head row. */
  readonly ids: Int32Array;

  constructor(ids: Int32Array) {
    this.ids = ids;
  }

  token(row: number): TokenId {
    return this.ids[row] ?? -1;
  }
}
