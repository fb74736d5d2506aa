/** Request fields that say how the chat template makes a prompt of the messages. */
import { z } from 'zod';
import { RENDERED_VARIABLES, settableVariables, THINKING } from '../../core/template-variables.ts';
import type { EngineInfo } from '../../engine/engine.ts';
import { boundedRecord } from '../schemas/bounded.ts';
import { fieldError } from '../schemas/parse-request.ts';

const MAX_VARIABLES = 32;
const MAX_VARIABLE_LENGTH = 1024;

const EFFORT = 'reasoning_effort';

const flag = () => z.boolean().nullish().describe('true or false');
const scalar = z
  .union([z.string().max(MAX_VARIABLE_LENGTH), z.number(), z.boolean()])
  .describe(`a string of up to ${MAX_VARIABLE_LENGTH} characters, a number, true or false`);

/** Schemas by field name; each description completes the sentence "Expected <field> to be …". */
export const TEMPLATE_FIELDS = {
  add_generation_prompt: flag(),
  continue_final_message: flag(),
  chat_template_kwargs: boundedRecord(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, scalar, MAX_VARIABLES)
    .nullish()
    .describe(`an object of up to ${MAX_VARIABLES} variables of the chat template`),
  reasoning_effort: z
    .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh'])
    .nullish()
    .describe('"none", "minimal", "low", "medium", "high" or "xhigh"'),
} as const;

type TemplateFields = z.infer<z.ZodObject<typeof TEMPLATE_FIELDS>>;

export interface TemplateRequest {
  readonly addGenerationPrompt: boolean;
  readonly continueFinalMessage: boolean;
  readonly variables: Readonly<Record<string, string | number | boolean>>;
  /** Null: the template's own. */
  readonly reasoningEffort: string | null;
}

/** @throws AppError `invalid_request` for fields that contradict each other */
export function toTemplateRequest(fields: TemplateFields): TemplateRequest {
  const continueFinalMessage = fields.continue_final_message ?? false;
  const addGenerationPrompt = fields.add_generation_prompt ?? !continueFinalMessage;
  if (continueFinalMessage && addGenerationPrompt) {
    throw fieldError('continue_final_message', 'false when add_generation_prompt is true', true);
  }
  const variables = fields.chat_template_kwargs ?? {};
  const reserved = Object.keys(variables).find((name) => RENDERED_VARIABLES.has(name));
  if (reserved !== undefined) {
    throw fieldError(`chat_template_kwargs.${reserved}`, 'absent, as the request has it elsewhere', variables[reserved]);
  }
  return { addGenerationPrompt, continueFinalMessage, variables, reasoningEffort: fields.reasoning_effort ?? null };
}

/**
 * The variables for the template of a model.
 * @throws AppError `invalid_request` for those that mean nothing to it
 */
export function templateVariables(
  { variables, reasoningEffort }: TemplateRequest,
  { chatVariables }: Pick<EngineInfo, 'chatVariables'>,
): Readonly<Record<string, string | number | boolean>> {
  const settable = settableVariables(chatVariables);
  for (const [name, value] of Object.entries(variables)) {
    if (settable.includes(name)) continue;
    throw fieldError(`chat_template_kwargs.${name}`, `absent, as this model takes only ${settable.join(', ')}`, value);
  }
  return { ...effortVariables(reasoningEffort, chatVariables), ...variables };
}

function effortVariables(effort: string | null, known: readonly string[]): Readonly<Record<string, string | boolean>> {
  if (effort === null) return {};
  if (known.includes(EFFORT)) return { [EFFORT]: effort };
  if (effort === 'none') return known.includes(THINKING) ? { [THINKING]: false } : {};
  throw fieldError(EFFORT, `absent or "none", as this model's chat template does not know it`, effort, 'unsupported_parameter');
}
