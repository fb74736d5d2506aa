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
      async prepare(engine) {
        const texts = prompts.filter((prompt) => typeof prompt === 'string');
        checkTextLength(texts, engine.info, 'prompt');
        return {
          prompts: await Promise.all(prompts.map((prompt) => encodePrompt(engine, prompt, params.addSpecialTokens ?? true))),
          format: completionFormat({ engine, params, echo }),
          structure: params.structure?.structure ?? null,
          structureAfter: null,
        };
      },
    };
  };
}

async function encodePrompt(engine: Engine, prompt: Prompt, addSpecialTokens: boolean): Promise<EncodedPrompt> {
  if (typeof prompt === 'string') return { text: prompt, tokens: await engine.text.encodePrompt(prompt, { addSpecialTokens }) };
  checkTokenRange('prompt', prompt, engine.info);
  return { text: null, tokens: prompt };
}
