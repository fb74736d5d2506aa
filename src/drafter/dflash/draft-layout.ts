/** Where rows stand in the graph of one draft; see `dflash-graph.ts` for the kinds of rows. */
import type { TokenId } from '../../core/token.ts';

/** One sequence's part in a draft. */
export interface SlotDraft {
  /** Rows of the target's last step that are new context for it. */
  readonly contextRows: readonly number[];
  readonly anchor: TokenId;
  /** Draft tokens wanted; 0: the sequence only takes in its context. */
  readonly budget: number;
}

/** Graphs have no empty inputs: where nothing is needed, one row is computed and used by nobody. */
const PADDING_ROW = [0];
const IDLE_ROWS = [0, 0];

export class DraftLayout {
  readonly contextRows: readonly number[];
  readonly blockIds: readonly TokenId[];
  readonly attended: readonly number[];
  readonly draftRows: readonly number[];
  /** Index of each slot's first entry in {@link draftRows}. */
  readonly firstDraft: readonly number[];
  /** Anchors of the sequences that draft; never empty. */
  readonly anchors: readonly TokenId[];
  /** What stands before each draft, among {@link anchors} followed by the drafts. */
  readonly draftsBefore: readonly number[];
  /** Place of each block row in its block. */
  readonly #places: readonly number[];
  readonly #queryRows: readonly (readonly number[])[];
  readonly #keyRows: readonly (readonly number[])[];

  /** @param firstDrafting slot of a block from which on its slots draft; those before it are there to be seen */
  constructor(slots: readonly SlotDraft[], maskTokenId: TokenId, firstDrafting: 0 | 1 = 1) {
    const context = slots.flatMap((slot) => slot.contextRows);
    this.contextRows = context.length > 0 ? context : PADDING_ROW;
    const blockIds: TokenId[] = [];
    const attended: number[] = [];
    const draftRows: number[] = [];
    const firstDraft: number[] = [];
    const queryRows: number[][] = [];
    const keyRows: number[][] = [];
    const places: number[] = [];
    let contextSeen = 0;
    let slotRowsSeen = 0;
    for (const { contextRows, anchor, budget } of slots) {
      const blockSize = budget === 0 ? 0 : budget + firstDrafting;
      const firstBlockRow = blockIds.length;
      firstDraft.push(draftRows.length);
      queryRows.push([...contextRows.map(() => 0), ...range(firstBlockRow, blockSize)]);
      keyRows.push([...range(contextSeen, contextRows.length), ...range(this.contextRows.length + firstBlockRow, blockSize)]);
      for (let slot = 0; slot < blockSize; slot++) {
        places.push(slot);
        blockIds.push(slot === 0 ? anchor : maskTokenId);
        attended.push(slotRowsSeen + contextRows.length + slot);
        if (slot >= firstDrafting) draftRows.push(firstBlockRow + slot);
      }
      contextSeen += contextRows.length;
      slotRowsSeen += contextRows.length + blockSize;
    }
    const empty = blockIds.length === 0;
    this.blockIds = empty ? [maskTokenId] : blockIds;
    this.attended = empty ? PADDING_ROW : attended;
    this.draftRows = empty ? PADDING_ROW : draftRows;
    this.firstDraft = firstDraft;
    const drafting = slots.filter(({ budget }) => budget > 0);
    this.anchors = empty ? [maskTokenId] : drafting.map(({ anchor }) => anchor);
    this.draftsBefore = empty
      ? PADDING_ROW
      : drafting.flatMap(({ budget }, sequence) => {
          const first = drafting.slice(0, sequence).reduce((sum, slot) => sum + slot.budget, 0);
          return [sequence, ...range(drafting.length + first, budget - 1)];
        });
    this.#places = empty ? PADDING_ROW : places;
    this.#queryRows = queryRows;
    this.#keyRows = keyRows;
  }

  /** By block row: the row so far before it in its block, among a row of zeros and the block rows. */
  rowsBefore(distance: number): readonly number[] {
    return this.#places.map((place, row) => (place < distance ? 0 : 1 + row - distance));
  }

  /** The block rows that are the queries of a slot's rows. */
  queryRows(slot: number): readonly number[] {
    return this.#queryRows[slot] ?? IDLE_ROWS;
  }

  /** Places of a slot's rows among context rows followed by block rows. */
  keyRows(slot: number): readonly number[] {
    return this.#keyRows[slot] ?? IDLE_ROWS;
  }
}

function range(first: number, length: number): number[] {
  return Array.from({ length }, (_, i) => first + i);
}
