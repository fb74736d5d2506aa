/** The body of `POST /v1/completions`, from JSON to prompts and the shape of the answer. */
import type { Engine } from '../engine/engine.ts';
import type { EncodedPrompt } from './answer-format.ts';
import { completionFormat } from './completion-format.ts';
import type { ParseBody } from './parsed-request.ts';
import { checkTextLength } from './prompt-text.ts';
import { createCompletionRequestParser, type Prompt } from './schemas/completion-request.ts';
import { checkTokenRange } from './schemas/token-range.ts';
import type { RequestLimits } from './server-config.ts';

export function createCompletionBodyParser(limits: RequestLimits): ParseBody {
  const parse = createCompletionRequestParser(limits);
  return (body) => {
    const { params, prompts, echo } = parse(body);
    return {
      params,
      promptCount: prompts.length,
      async prepare(engine, signal) {
        return {
          prompts: await encodePrompts(engine, prompts, params.addSpecialTokens ?? true, signal),
          format: completionFormat({ engine, params, echo }),
          structure: params.structure?.structure ?? null,
          structureAfter: null,
        };
      },
    };
  };
}

/** Prompts are all texts, or all token ids. */
async function encodePrompts(
  engine: Engine,
  prompts: readonly Prompt[],
  addSpecialTokens: boolean,
  signal: AbortSignal,
): Promise<readonly EncodedPrompt[]> {
  const texts = prompts.filter((prompt) => typeof prompt === 'string');
  checkTextLength(texts, engine.info, 'prompt');
  const encoded = await engine.text.encodeAll(texts, { addSpecialTokens }, signal);
  return prompts.map((prompt, i) => {
    if (typeof prompt === 'string') return { text: prompt, tokens: encoded[i]! };
    checkTokenRange('prompt', prompt, engine.info);
    return { text: null, tokens: prompt };
  });
}
