/** Runs all choices of a request side by side and hands out their events in order of arrival. */
import { abortWith } from '../core/abort-with.ts';
import { AppError } from '../core/app-error.ts';
import type { DecodeEvent } from '../core/decode-event.ts';
import { type GenerationPlan, paramNames } from './generation-plan.ts';
import { nameParam } from './name-param.ts';
import { abortReason } from './request-turns.ts';

export interface ChoiceEvent {
  readonly choice: number;
  readonly event: DecodeEvent;
}

type Arrival = ChoiceEvent | { readonly choice: number; readonly ended: true } | { readonly error: unknown };

/**
 * Each iterator has at most one event under way; what a consumer that waits has not taken is kept by the engine, which goes
 * on. Leaving early, a failure of one choice, and the signal all stop every choice.
 * @throws AppError what the engine throws, with the prompt's field named where the prompt is at fault; the signal's reason
 *   when that is one, else `aborted` when the signal ended the answer; `unavailable` when the engine ended it.
 */
export async function* runChoices(plan: GenerationPlan, signal: AbortSignal): AsyncGenerator<ChoiceEvent, void, undefined> {
  const stop = new AbortController();
  using _ = abortWith(stop, signal);
  const iterators: AsyncIterator<DecodeEvent>[] = [];
  const arrivals: Arrival[] = [];
  let wake = (): void => undefined;
  const arrive = (arrival: Arrival): void => {
    arrivals.push(arrival);
    wake();
  };
  const pull = (choice: number): void => {
    iterators[choice]!.next().then(
      (result) => arrive(result.done === true ? { choice, ended: true } : { choice, event: result.value }),
      (error: unknown) => arrive({ error }),
    );
  };
  try {
    plan.engine.checkQueue(plan.requests);
    for (const request of plan.requests) iterators.push(plan.engine.generate(request, stop.signal)[Symbol.asyncIterator]());
    for (const choice of iterators.keys()) pull(choice);
    for (let open = iterators.length; open > 0; ) {
      // A reader who is too slow for the time that it has is not told the rest, either.
      if (signal.reason instanceof AppError) throw signal.reason;
      const arrival = arrivals.shift();
      if (arrival === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if ('error' in arrival) {
        throw arrival.error;
      } else if ('ended' in arrival) {
        open -= 1;
      } else {
        if (arrival.event.type === 'finish' && arrival.event.reason === 'aborted') throw endReason(signal);
        yield arrival;
        pull(arrival.choice);
      }
    }
  } catch (error) {
    throw nameParam(error, paramNames(plan));
  } finally {
    stop.abort();
    await Promise.allSettled(iterators.map((iterator) => iterator.return?.()));
  }
}

/**
 * Starts the source and waits for its first event, but no longer than `graceMs`. A refusal that comes in that time is
 * thrown here, while it can still become an HTTP status; the stream must not wait for a long prompt to send its headers.
 */
export async function startEvents<Event>(
  source: AsyncGenerator<Event, void, undefined>,
  graceMs: number,
): Promise<AsyncGenerator<Event, void, undefined>> {
  const first = source.next();
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  try {
    await Promise.race([first, grace]);
  } finally {
    clearTimeout(timer);
  }
  // Read below; this only says that a rejection meanwhile is not unhandled.
  first.catch(() => undefined);
  return resume(first, source);
}

async function* resume<Event>(
  first: Promise<IteratorResult<Event, void>>,
  source: AsyncGenerator<Event, void, undefined>,
): AsyncGenerator<Event, void, undefined> {
  try {
    const result = await first;
    if (result.done === true) return;
    yield result.value;
    yield* source;
  } finally {
    await source.return();
  }
}

function endReason(signal: AbortSignal): AppError {
  if (signal.aborted) return abortReason(signal);
  return new AppError('unavailable', 'Expected to finish the answer, got a shutdown of the server. Send the request again.');
}
