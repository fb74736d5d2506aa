/** What the chunks of a streamed completion add up to, by choice. */

type Json = Readonly<Record<string, unknown>>;

interface Choice extends Json {
  readonly index: number;
}

/** Texts and lists are joined, whatever else a chunk says replaces what an earlier one said. */
export function joinChoices(chunks: readonly Json[]): readonly Json[] {
  const choices: Json[] = [];
  for (const choice of chunks.flatMap((chunk) => chunk['choices'] as readonly Choice[])) {
    choices[choice.index] = join(choices[choice.index], choice);
  }
  return choices;
}

function join(before: Json | undefined, after: Json): Json {
  if (before === undefined) return after;
  return Object.fromEntries(Object.keys({ ...before, ...after }).map((key) => [key, joinValue(key, before[key], after[key])]));
}

function joinValue(key: string, before: unknown, after: unknown): unknown {
  if (after === undefined || after === null) return before;
  if (before === undefined || before === null) return after;
  if (key === 'text') return `${before}${after}`;
  if (Array.isArray(before)) return [...before, ...(after as unknown[])];
  return typeof before === 'object' ? join(before as Json, after as Json) : after;
}
