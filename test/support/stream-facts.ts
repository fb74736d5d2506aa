/** What a stream's payloads say, gathered for comparison. */

type Payload = Readonly<Record<string, unknown>>;

interface Choice {
  readonly index: number;
  readonly text?: string;
  readonly delta?: {
    readonly role?: string;
    readonly content?: string;
    readonly reasoning?: string;
    readonly tool_calls?: readonly CallDelta[];
  };
  readonly finish_reason: string | null;
  readonly stop_reason?: string | number | null;
}

interface CallDelta {
  readonly index: number;
  readonly function: { readonly name?: string; readonly arguments: string };
}

export interface ToldCall {
  readonly name: string;
  readonly arguments: string;
}

export interface StreamFacts {
  /** Text pieces of each choice that are not empty. */
  readonly pieces: readonly (readonly string[])[];
  /** Pieces of reasoning, of all choices. */
  readonly reasoning: readonly string[];
  /** Calls of all choices, joined. */
  readonly calls: readonly ToldCall[];
  readonly finishReasons: readonly string[];
  readonly stopReason: string | number | null;
  readonly errorCode: string | undefined;
  readonly metricsIn: 'finish chunk' | 'usage chunk' | undefined;
  readonly metrics: Payload | undefined;
}

export function streamFacts(payloads: readonly Payload[]): StreamFacts {
  const pieces: string[][] = [];
  const reasoning: string[] = [];
  const calls: { name: string; arguments: string }[] = [];
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
      if (choice.delta?.reasoning !== undefined) reasoning.push(choice.delta.reasoning);
      for (const call of choice.delta?.tool_calls ?? []) {
        if (call.function.name !== undefined) calls.push({ name: call.function.name, arguments: '' });
        calls.at(-1)!.arguments += call.function.arguments;
      }
      if (choice.finish_reason === null) continue;
      finishReasons[choice.index] = choice.finish_reason;
      stopReason = choice.stop_reason ?? null;
    }
    if (!('metrics' in payload)) continue;
    metricsIn = choices.length === 0 ? 'usage chunk' : 'finish chunk';
    metrics = payload['metrics'] as Payload;
  }
  return { pieces, reasoning, calls, finishReasons, stopReason, errorCode, metricsIn, metrics };
}

/** Ids of tool calls are random: the payloads with each one written as its place among them. */
export function withFixedCallIds<Value>(payloads: Value): Value {
  const ids = new Map<string, string>();
  const fixed = JSON.stringify(payloads).replaceAll(/"call_[0-9a-f]{32}"/g, (id) => {
    const known = ids.get(id) ?? `"call ${ids.size}"`;
    ids.set(id, known);
    return known;
  });
  return JSON.parse(fixed) as Value;
}

/** Several choices may interleave in any order: their payloads by choice, those of no choice last. */
export function byChoice(payloads: readonly Payload[]): readonly Payload[] {
  const key = (payload: Payload) =>
    (payload['choices'] as readonly Choice[] | undefined)?.[0]?.index ?? Number.POSITIVE_INFINITY;
  return payloads.toSorted((left, right) => (key(left) === key(right) ? 0 : key(left) - key(right)));
}
