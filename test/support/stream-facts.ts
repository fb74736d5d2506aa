/** What a stream's payloads say, gathered for comparison. */

type Payload = Readonly<Record<string, unknown>>;

interface Choice {
  readonly index: number;
  readonly text?: string;
  readonly delta?: { readonly role?: string; readonly content?: string };
  readonly finish_reason: string | null;
  readonly stop_reason?: string | number | null;
}

export interface StreamFacts {
  /** Text pieces of each choice that are not empty. */
  readonly pieces: readonly (readonly string[])[];
  readonly finishReasons: readonly string[];
  readonly stopReason: string | number | null;
  readonly errorCode: string | undefined;
  readonly metricsIn: 'finish chunk' | 'usage chunk' | undefined;
  readonly metrics: Payload | undefined;
}

export function streamFacts(payloads: readonly Payload[]): StreamFacts {
  const pieces: string[][] = [];
  const finishReasons: string[] = [];
  let stopReason: string | number | null = null;
  let errorCode: string | undefined;
  let metricsIn: StreamFacts['metricsIn'];
  let metrics: Payload | undefined;
  for (const payload of payloads) {
    if ('error' in payload) {
      errorCode = (payload['error'] as { readonly code: string }).code;
      continue;
    }
    const choices = payload['choices'] as readonly Choice[];
    for (const choice of choices) {
      pieces[choice.index] ??= [];
      const piece = choice.text ?? choice.delta?.content ?? '';
      if (piece !== '') pieces[choice.index]!.push(piece);
      if (choice.finish_reason === null) continue;
      finishReasons[choice.index] = choice.finish_reason;
      stopReason = choice.stop_reason ?? null;
    }
    if (!('metrics' in payload)) continue;
    metricsIn = choices.length === 0 ? 'usage chunk' : 'finish chunk';
    metrics = payload['metrics'] as Payload;
  }
  return { pieces, finishReasons, stopReason, errorCode, metricsIn, metrics };
}

/** Several choices may interleave in any order: their payloads by choice, those of no choice last. */
export function byChoice(payloads: readonly Payload[]): readonly Payload[] {
  const key = (payload: Payload) =>
    (payload['choices'] as readonly Choice[] | undefined)?.[0]?.index ?? Number.POSITIVE_INFINITY;
  return payloads.toSorted((left, right) => (key(left) === key(right) ? 0 : key(left) - key(right)));
}
