import type { TokenId } from '../../core/token.ts';

/** Rows of a drafter's head and the tokens that they stand for, where it chooses among some of the target's only. */
export class KeptTokens {
  /** Target ids by head row. */
  readonly ids: Int32Array;
  readonly #rows: ReadonlyMap<TokenId, number>;

  constructor(ids: Int32Array) {
    this.ids = ids;
    this.#rows = new Map([...ids].map((id, row) => [id, row]));
  }

  token(row: number): TokenId {
    return this.ids[row] ?? -1;
  }

  /** Undefined for a token that the drafter cannot choose. */
  row(token: TokenId): number | undefined {
    return this.#rows.get(token);
  }
}
