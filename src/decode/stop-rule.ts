import type { FinishReason } from '../core/decode-event.ts';
import type { TokenId } from '../core/token.ts';

/** Why an answer ended. */
export interface Ending {
  readonly reason: FinishReason;
  /** The stop string or stop token, where the answer says so. */
  readonly stopReason: string | TokenId | null;
}

/** Looks at each emitted token in turn. */
export interface StopRule {
  /** @returns the ending when this token is the last one, else null */
  push(token: TokenId): Ending | null;
}
