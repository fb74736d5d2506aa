/** The functions that a chat offers to the model, and which of them it may or must call. */
import { z } from 'zod';
import { boundedArray, isPlainObject } from '../schemas/bounded.ts';
import { fieldError } from '../schemas/parse-request.ts';
import { isShallow, MAX_DEPTH } from './json-depth.ts';

const MAX_TOOLS = 128;
const MAX_DESCRIPTION = 16_384;

/** OpenAI's rule for names of functions. */
export const FUNCTION_NAME = /^[A-Za-z0-9_-]{1,64}$/;

const NAME_WORDS = '1 to 64 letters, digits, underscores and dashes';

const toolSchema = z
  .strictObject({
    type: z.literal('function').describe('"function", the only type of tool that this server supports'),
    function: z
      .strictObject({
        name: z.string().regex(FUNCTION_NAME).describe(NAME_WORDS),
        description: z.string().max(MAX_DESCRIPTION).nullish().describe(`a string of up to ${MAX_DESCRIPTION} characters`),
        parameters: z
          .custom<Readonly<Record<string, unknown>>>((value) => isPlainObject(value) && isShallow(value))
          .meta({ type: 'object' })
          .nullish()
          .describe(`a JSON schema of an object, of up to ${MAX_DEPTH} levels`),
        strict: z.boolean().nullish().describe('true or false'),
      })
      .describe('an object with name, description, parameters and strict'),
  })
  .describe('{"type": "function", "function": {…}}');

/** A function as the caller describes it; chat templates show it as it is. */
export type Tool = z.infer<typeof toolSchema>;

/** Schemas by field name; each description completes the sentence "Expected <field> to be …". */
export const TOOL_FIELDS = {
  tools: boundedArray(toolSchema, MAX_TOOLS, 0).nullish().describe(`a list of up to ${MAX_TOOLS} tools`),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({ name: z.string().regex(FUNCTION_NAME) }),
      }),
    ])
    .nullish()
    .describe('"none", "auto", "required" or {"type": "function", "function": {"name": …}}'),
  parallel_tool_calls: z.boolean().nullish().describe('true or false'),
} as const;

/** What the model may do with tools. */
export interface ToolUse {
  readonly tools: readonly Tool[];
  /** `auto`: call or answer; `required`: call. */
  readonly choice: 'auto' | 'required';
  /** More than one call in an answer. */
  readonly parallel: boolean;
}

/**
 * @returns null when the model is to call nothing: then it is not told of any function either
 * @throws AppError `invalid_request` for names that are given twice, and for a choice among functions that are not there
 */
export function toToolUse(fields: z.infer<z.ZodObject<typeof TOOL_FIELDS>>): ToolUse | null {
  const tools = fields.tools ?? [];
  for (const [i, { function: described }] of tools.entries()) {
    const isRepeated = tools.slice(0, i).some((other) => other.function.name === described.name);
    if (isRepeated) throw fieldError(`tools[${i}].function.name`, 'a name that no other tool has', described.name);
    const type = described.parameters?.['type'];
    if (type !== undefined && type !== 'object') {
      throw fieldError(`tools[${i}].function.parameters.type`, '"object"', type);
    }
  }
  const choice = fields.tool_choice ?? 'auto';
  const parallel = fields.parallel_tool_calls ?? true;
  if (typeof choice !== 'string') {
    const named = tools.filter((tool) => tool.function.name === choice.function.name);
    if (named.length === 0) throw fieldError('tool_choice.function.name', 'the name of one of the tools', choice.function.name);
    // OpenAI makes exactly one call of a function that was asked for by name.
    return { tools: named, choice: 'required', parallel: false };
  }
  if (choice === 'required' && tools.length === 0) throw fieldError('tool_choice', '"none" or "auto" without tools', choice);
  return choice === 'none' || tools.length === 0 ? null : { tools, choice, parallel };
}
