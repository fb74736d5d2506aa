/** A small model of the same vocabulary drafts: its own likeliest token, then the one behind that, and so on (Leviathan, Kalman and Matias 2023). */
import { AppError } from '../../core/app-error.ts';
import type { Position, TokenId } from '../../core/token.ts';
import { argmax } from '../../sampling/argmax.ts';
import { type Drafter, type DraftRequest, type DraftState, type ForkedState, NO_PROPOSAL, type Proposal } from '../drafter.ts';
import type { DecoderSpan, DraftDecoder } from './draft-decoder.ts';
import { DraftModelState } from './draft-model-state.ts';

export const DRAFT_MODEL_TOKENS = 8;

/** One sequence while a call of propose lasts. */
interface Member {
  readonly state: DraftModelState;
  /** Draft tokens wanted. */
  readonly budget: number;
  /** Tokens that the decoder has still to see. */
  queue: TokenId[];
  readonly tokens: TokenId[];
  readonly probabilities: number[];
}

export class DraftModelDrafter implements Drafter {
  readonly kind = 'draft-model';
  readonly maxDraftTokens: number;
  readonly taps: readonly number[] = [];
  readonly bytesPerPosition: number;
  readonly #decoder: DraftDecoder;

  /** @param decoder taken over */
  constructor(decoder: DraftDecoder, maxDraftTokens = DRAFT_MODEL_TOKENS) {
    this.#decoder = decoder;
    this.maxDraftTokens = maxDraftTokens;
    this.bytesPerPosition = decoder.cacheBytesPerPosition;
  }

  async warmUp(): Promise<void> {
    await this.#decoder.warmUp();
  }

  open(): DraftState {
    return new DraftModelState(this.#decoder.openCache());
  }

  fork(state: DraftState, length: Position): ForkedState {
    if (!(state instanceof DraftModelState)) throw new AppError('internal', 'The state to fork is one of another drafter');
    return state.fork(this.#decoder.openCache(), length);
  }

  async propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    const members = requests.map((request) => this.#member(request));
    for (;;) {
      const fed = this.#nextStep(members);
      if (fed.length === 0) break;
      const spans = fed.map(({ member, tokens }): DecoderSpan => {
        const isLast = tokens.length === member.queue.length;
        return { cache: member.state.cache, tokens, logitsFrom: isLast ? tokens.length - 1 : tokens.length };
      });
      const result = await this.#decoder.step(spans, signal);
      for (const [span, { member, tokens }] of fed.entries()) {
        member.state.computed(tokens);
        member.queue = member.queue.slice(tokens.length);
        if (member.queue.length > 0) continue;
        const { token, probability } = likeliest(result.logits(span, tokens.length - 1));
        member.tokens.push(token);
        member.probabilities.push(probability);
        // Nothing is drafted behind the last one, so that its row is not needed.
        if (member.tokens.length < member.budget) member.queue = [token];
      }
    }
    return members.map(({ tokens, probabilities }) => (tokens.length === 0 ? NO_PROPOSAL : { tokens, probabilities }));
  }

  #member({ state, anchor, budget }: DraftRequest): Member {
    if (!(state instanceof DraftModelState)) throw new AppError('internal', 'A draft request names a state of another drafter');
    const { capacity } = state.cache;
    // The last draft token needs no position.
    const room = capacity - state.length;
    const capped = Math.max(Math.min(budget, this.maxDraftTokens, room), 0);
    // Without a draft to make, a run would cost nearly as much as with one: what was observed can wait for the next.
    const queue = capped === 0 ? [] : state.missing(anchor);
    return { state, budget: capped, queue, tokens: [], probabilities: [] };
  }

  /** The next tokens of as many sequences as a step can serve; those that want the fewest first, so that no prompt delays them. */
  #nextStep(members: readonly Member[]): { readonly member: Member; readonly tokens: readonly TokenId[] }[] {
    const waiting = members.filter(({ queue }) => queue.length > 0).sort((a, b) => a.queue.length - b.queue.length);
    const fed: { readonly member: Member; readonly tokens: readonly TokenId[] }[] = [];
    let room = this.#decoder.maxRows;
    for (const member of waiting.slice(0, this.#decoder.maxSequences)) {
      const tokens = member.queue.slice(0, room);
      if (tokens.length === 0) break;
      fed.push({ member, tokens });
      room -= tokens.length;
    }
    return fed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#decoder[Symbol.asyncDispose]();
  }
}

/** @param logits [vocab] */
function likeliest(logits: Float32Array): { readonly token: TokenId; readonly probability: number } {
  const token = argmax(logits);
  const largest = logits[token] as number;
  let mass = 0;
  for (let i = 0; i < logits.length; i++) mass += Math.exp((logits[i] as number) - largest);
  return { token, probability: 1 / mass };
}
