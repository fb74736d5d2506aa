/**
 * How many rows a span attends with, so that a row's attention is the same to the bit alone, in a block and in a prompt.
 *
 * The CPU's attention kernel works on tiles of rows by keys, whose sizes follow from the head's size and the processor's
 * cache. Two of its habits make a row depend on others, and are avoided by repeating the last row and dropping the
 * results of its doubles, which stand behind it and so are not seen by it.
 */

/** Rows that a slot attends with at the least. */
export const LEAST_SLOT_ROWS = 2;

/** A tile of a single row is computed in another way than one of several. All tiles have a multiple of so many rows. */
const ROW_TILE_DIVISOR = 16;

/** Dot products of more dimensions are summed in two parts, unless a tile has few keys. */
const WIDE_HEAD = 128;
const FEW_KEYS = 64;
/** Tiles of wide heads have 64 keys, where the habit does no harm, or a multiple of so many. */
const KEY_TILE_DIVISOR = 128;

/**
 * @param rows of the span
 * @param cached positions before them
 */
export function attendedRows(rows: number, cached: number, headDim: number): number {
  const keysOfLastTile = (cached + rows) % KEY_TILE_DIVISOR;
  const few = headDim > WIDE_HEAD && keysOfLastTile >= 1 && keysOfLastTile <= FEW_KEYS;
  const enough = few ? rows + FEW_KEYS + 1 - keysOfLastTile : rows;
  return enough % ROW_TILE_DIVISOR === 1 ? enough + 1 : enough;
}

/** Positions beyond the context that repeated rows can take. */
export function sparePositions(headDim: number): number {
  return headDim > WIDE_HEAD ? FEW_KEYS + 1 : 1;
}
