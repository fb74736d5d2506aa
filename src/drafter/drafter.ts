/** PORT of a drafter: something that proposes the next tokens of a sequence, cheaply, for the target to verify. */
import type { Position, TokenId } from '../core/token.ts';
import type { OwnedTensor } from '../onnx/tensor.ts';
import type { SyntheticAcceptance } from './synthetic/synthetic-acceptance.ts';

export interface Drafter extends AsyncDisposable {
  /** What it is: `dflash`, `ngram`, … */
  readonly kind: string;
  /** The longest draft it can make. */
  readonly maxDraftTokens: number;
  /**
   * Target layers whose output it wants to see, as 0-based indices; empty when tokens are enough. -1 is the embedding, and
   * the number of layers is the last layer's output behind the final norm.
   */
  readonly taps: readonly number[];
  /** Starts a sequence, of which nothing is known yet. */
  open(): DraftState;
  /**
   * Starts a sequence that has its first rows in common with another, and so has observed them: at most `length`, and no
   * more than the other has taken in by now. The other stays as it is.
   *
   * A drafter that leaves it out is shown the tokens again, in one piece and without taps; if it needs taps, prefixes of
   * earlier sequences are not reused for its sequences.
   */
  fork?(state: DraftState, length: Position): ForkedState;
  /**
   * Present when it drafts stand-ins, for capacity tests: a host that supports it keeps as many of them as this says, in
   * place of comparing them, and marks everything that is made so. Any other host compares them, and keeps hardly any.
   */
  readonly synthetic?: SyntheticAcceptance;
  /** Bytes of memory that a row takes which was taken in. Default 0. */
  readonly bytesPerPosition?: number;
  /** Bytes that a sequence takes besides, however long it is. Default 0. */
  readonly bytesPerSequence?: number;
  /**
   * Drafts for several sequences at once.
   *
   * Called once between two target steps, with every sequence that observed rows since the last call, as those rows'
   * taps are gone after the next step. A budget of 0 asks for no draft: such a sequence only takes in what it observed, or
   * keeps it for the next draft.
   * @returns one proposal per request, in order; an empty one means "nothing to propose this round"
   * @throws whatever went wrong; the sequences go on without this drafter
   */
  propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]>;
}

/** What came of {@link Drafter.fork}. */
export interface ForkedState {
  readonly state: DraftState;
  /** Rows that it has observed. */
  readonly length: Position;
}

/** A drafter's memory of one sequence. */
export interface DraftState extends Disposable {
  /**
   * Told of rows that the target has computed and that stay: the prompt's at first, then in each round the anchor and
   * the accepted draft tokens. Rows come in order and without gaps; rejected ones are never shown.
   */
  observe(rows: CommittedRows): void;
  /** Forgets the rows from position `length` on. */
  rewind(length: Position): void;
  /** Rows observed that the next draft takes in first, and that make it take longer. Default 0. */
  readonly waitingRows?: number;
}

export interface CommittedRows {
  /** Position of the first token. */
  readonly position: Position;
  readonly tokens: readonly TokenId[];
  /**
   * Output of the layers in {@link Drafter.taps}, by layer; [rows of the step, hidden] each. The row of `tokens[i]` is
   * `firstRow + i`. Valid until the next target step.
   */
  readonly taps: ReadonlyMap<number, OwnedTensor<'f32'>>;
  readonly firstRow: number;
}

export interface DraftRequest {
  readonly state: DraftState;
  /**
   * The last token of the sequence, which the target has chosen but not yet seen as input. It follows the observed rows.
   * Without meaning when the budget is 0.
   */
  readonly anchor: TokenId;
  /** Length of the longest draft that is of use. */
  readonly budget: number;
}

export interface Proposal {
  /** Draft tokens for the positions behind the anchor; at most the budget. */
  readonly tokens: readonly TokenId[];
  /** The drafter's own probability of each draft token, where it has one. */
  readonly probabilities?: readonly number[];
}

export const NO_PROPOSAL: Proposal = { tokens: [] };
