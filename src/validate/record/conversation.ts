/** A conversation whose answers are the target's own. */
import { AppError } from '../../core/app-error.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';

interface Message {
  readonly role: string;
  readonly content: string;
}

/** Which user turns are answered: every one, in place of the answers that are given, or the last, behind what is given. */
export type Turns = 'all' | 'last';

export class Conversation {
  readonly id: string;
  readonly #turns: readonly (readonly Message[])[];
  readonly #history: Message[] = [];
  #answered = 0;

  /** @throws AppError `invalid_config` when no user turn is left to answer */
  constructor({ id, messages }: DiagnosisPrompt, turns: Turns) {
    this.id = id;
    this.#turns = turns === 'last' ? [upToLastUser(messages as readonly Message[])] : userTurns(messages as readonly Message[]);
    if (this.#turns.length === 0 || this.#turns[0]?.length === 0) {
      throw new AppError('invalid_config', `Expected a message of a user in ${id}, got none; remove it from the prompts`);
    }
  }

  /** Everything before the answer that comes next; null when all turns are answered. */
  next(): readonly Message[] | null {
    const turn = this.#turns[this.#answered];
    if (turn === undefined) return null;
    return [...this.#history, ...turn];
  }

  /** Name of the sequence that {@link next} leads to. */
  get turnId(): string {
    return this.#turns.length === 1 ? this.id : `${this.id}#${this.#answered + 1}`;
  }

  answer(content: string): void {
    this.#history.push(...(this.#turns[this.#answered] ?? []), { role: 'assistant', content });
    this.#answered++;
  }
}

/** Each user's message with what stands before it since the last answer, such as a system prompt. */
function userTurns(messages: readonly Message[]): Message[][] {
  const turns: Message[][] = [];
  let pending: Message[] = [];
  for (const message of messages) {
    if (message.role === 'assistant') continue;
    pending.push(message);
    if (message.role !== 'user') continue;
    turns.push(pending);
    pending = [];
  }
  return turns;
}

function upToLastUser(messages: readonly Message[]): readonly Message[] {
  return messages.slice(0, messages.findLastIndex(({ role }) => role === 'user') + 1);
}
