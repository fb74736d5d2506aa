/** The tap in front of the first layer. */
export const EMBEDDING_TAP = -1;

/** Inputs and outputs of a step's graph, by name. */
export const IO = {
  /** [rows] of i64: token ids, sequence after sequence. */
  ids: 'ids',
  /** [1, rows] of i64: where each row stands in its sequence; only where the graph itself rotates queries and keys. */
  positions: 'positions',
  /** [1, slotRows] of i64: the rows that a slot attends with. The last may stand several times. */
  slotRows: (slot: number) => `slot.${slot}.rows`,
  /** [1, ownRows] of i64: a slot's rows, each once; only where there is a recurrent state, which takes each row once. */
  ownRows: (slot: number) => `slot.${slot}.own_rows`,
  /** [rows] of i64: where each row's attention stands among all slots' rows. */
  attended: 'attended',
  /** [recorded] of i64: the rows whose part in the recurrent states comes out; only where there are such states. */
  recordedRows: 'recorded_rows',
  /** [wanted] of i64: the rows whose logits are computed. */
  logitRows: 'logit_rows',
  /** [1] of i64: how many of the largest logits come out sorted. */
  topK: 'top_k',
  /** [wanted, vocab] */
  logits: 'logits',
  /** [wanted, k], largest first. */
  topLogits: 'top_logits',
  /** [wanted, k] of i64; the smaller id first among equal logits. */
  topIds: 'top_ids',
  /** [rows, hidden]; -1 is the embedding, and the number of layers stands for the final norm. */
  tap: (layer: number) => `tap.${layer}`,
  /** [recorded, …]: what the recurrence of a layer took of the recorded rows. */
  record: (layer: number) => ({
    mixed: `record.${layer}.mixed`,
    decay: `record.${layer}.decay`,
    rate: `record.${layer}.rate`,
  }),
} as const;
