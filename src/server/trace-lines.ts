import type { FinishEvent } from '../core/decode-event.ts';
import type { TokenId } from '../core/token.ts';
import type { Engine } from '../engine/engine.ts';

/** The rounds of one choice, in the shape of the lines that `validate` writes. */
export function traceLines(finish: FinishEvent, choice: number, engine: Pick<Engine, 'text'>) {
  const traced = (token: TokenId) => ({ token, text: engine.text.tokenText(token) });
  return (finish.trace ?? []).map(({ position, anchor, drafted, emitted, ...rest }, round) => ({
    choice,
    round,
    position,
    anchor: traced(anchor),
    drafted: drafted.map(({ token, ...facts }) => ({ ...traced(token), ...facts })),
    emitted: emitted.map(({ token, ...facts }) => ({ ...traced(token), ...facts })),
    ...rest,
  }));
}
