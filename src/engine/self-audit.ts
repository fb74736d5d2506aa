/** Decodes answers again without speculation, while nobody else wants the target. */
import { AbortedError } from '../core/aborted-error.ts';
import type { TokenId } from '../core/token.ts';
import { decodeRound } from '../decode/round.ts';
import type { Ending } from '../decode/stop-rule.ts';
import type { Target } from '../target/target.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import type { MakeProcessor } from './answer-rules.ts';
import { requestFraction } from './drafter-split.ts';
import type { AuditReport, GenerateRequest } from './engine.ts';
import { PrefixCache } from './prefix-cache.ts';
import { startRequest } from './start-request.ts';

/** An answer as it was served. */
export interface ServedAnswer {
  readonly request: GenerateRequest;
  /** Of the request's rules. */
  readonly makeProcessor: MakeProcessor;
  readonly drafter: string;
  readonly tokens: readonly TokenId[];
  readonly ending: Ending;
}

/** Answers that wait for idle time; more are not taken. */
const MAX_WAITING = 64;

export class SelfAudit {
  readonly #rate: number;
  readonly #waiting: ServedAnswer[] = [];
  #skipped = 0;

  /** @param rate share of the answers, 0 to 1 */
  constructor(rate: number) {
    this.#rate = rate;
  }

  /** Whether an answer waits. */
  get due(): boolean {
    return this.#waiting.length > 0;
  }

  /** Answers that were drawn, and not taken as too many waited. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Takes an answer if it is among those to look at. */
  offer(answer: ServedAnswer): void {
    if (requestFraction(answer.request, 'audit') >= this.#rate) return;
    if (this.#waiting.length >= MAX_WAITING) this.#skipped += 1;
    else this.#waiting.push(answer);
  }

  /**
   * Looks at one answer.
   * @param signal when it aborts, the answer goes to the end of those that wait
   * @returns null when the signal ended it
   */
  async next(target: Target, tokenizer: Tokenizer, signal: AbortSignal): Promise<AuditReport | null> {
    const answer = this.#waiting.shift();
    if (answer === undefined) return null;
    const { request, drafter } = answer;
    try {
      const plain = await decodePlainly(answer, target, tokenizer, signal);
      return { request, drafter, ...compare(answer, plain), served: answer, plain, error: null };
    } catch (error) {
      if (error instanceof AbortedError) {
        this.#waiting.push(answer);
        return null;
      }
      const message = error instanceof Error ? error.message : String(error);
      return { request, drafter, outcome: 'failed', differsAt: null, served: answer, plain: null, error: message };
    }
  }
}

type Answer = Pick<ServedAnswer, 'tokens' | 'ending'>;

/** @throws AbortedError when the signal ended it */
async function decodePlainly(
  { request, makeProcessor }: ServedAnswer,
  target: Target,
  tokenizer: Tokenizer,
  signal: AbortSignal,
): Promise<Answer> {
  using prefixes = new PrefixCache(target, 0);
  const { sequence } = startRequest(
    { ...request, drafter: 'none' },
    { target, tokenizer, prefixes, drafters: [], running: [], shadows: [], makeProcessor },
  );
  using owned = sequence;
  while (owned.ending === null) {
    if (signal.aborted) throw new AbortedError('An audit', signal.reason);
    const { sequences } = await decodeRound(target, [owned], signal);
    const failure = sequences[0]?.failure ?? null;
    if (failure !== null) throw failure.error;
  }
  return { tokens: owned.tokens.slice(owned.promptLength), ending: owned.ending };
}

function compare(served: Answer, plain: Answer): Pick<AuditReport, 'outcome' | 'differsAt'> {
  const length = Math.max(served.tokens.length, plain.tokens.length);
  for (let i = 0; i < length; i++) {
    if (served.tokens[i] !== plain.tokens[i]) return { outcome: 'different', differsAt: i };
  }
  const sameEnd = served.ending.reason === plain.ending.reason && served.ending.stopReason === plain.ending.stopReason;
  return sameEnd ? { outcome: 'equal', differsAt: null } : { outcome: 'different', differsAt: length };
}
