/** One request, measured. */
import type { FinishEvent } from '../../src/core/decode-event.ts';
import type { SamplingParams } from '../../src/core/sampling-params.ts';
import type { Engine, GenerateRequest } from '../../src/engine/engine.ts';

export interface Answer {
  readonly tokens: readonly number[];
  readonly finish: FinishEvent;
  /** From the first token to the last: the prompt's share is not speculation's to speed up. */
  readonly decodeMs: number;
}

let counter = 0;

export function chatRequest(
  engine: Engine,
  prompt: string,
  maxTokens: number,
  overrides: Partial<GenerateRequest> = {},
): GenerateRequest {
  const greedy: SamplingParams = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 0n };
  return {
    id: `bench-${counter++}`,
    promptTokens: engine.text.encode(engine.text.renderChat([{ role: 'user', content: prompt }]), { addSpecialTokens: false }),
    sampling: greedy,
    maxTokens,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: false,
    skipSpecialTokens: true,
    drafter: null,
    draftTokens: null,
    ...overrides,
  };
}

export async function answer(engine: Engine, request: GenerateRequest): Promise<Answer> {
  const tokens: number[] = [];
  let finish: FinishEvent | null = null;
  let first = 0;
  for await (const event of engine.generate(request, new AbortController().signal)) {
    if (event.type === 'finish') finish = event;
    else {
      if (first === 0) first = performance.now();
      tokens.push(...event.tokens);
    }
  }
  const decodeMs = performance.now() - first;
  if (finish === null) throw new Error('The answer has no end');
  return { tokens, finish, decodeMs };
}
