/** Bodies of the requests that measure drafters: options of the commands, by their names in snake case. */
import { z } from 'zod';

const MAX_PROMPTS = 1000;
const MAX_DRAFTERS = 8;

const count = (least: number, most: number) =>
  z.number().int().min(least).max(most).optional().describe(`an integer from ${least} to ${most}`);
const amount = (least: number, most: number) =>
  z.number().min(least).max(most).optional().describe(`a number from ${least} to ${most}`);
const share = () => amount(0, 1);

const message = z
  .looseObject({
    role: z.string().min(1).describe('a string'),
    content: z.string().describe('a string'),
  })
  .describe('an object with role and content');

/** As a line of a prompt file, where more than is known may stand. */
const prompt = z
  .looseObject({
    id: z.string().min(1).max(256).optional().describe('a string of at most 256 characters'),
    category: z.string().min(1).max(256).optional().describe('a string of at most 256 characters'),
    messages: z.array(message).min(1).optional().describe('a list of messages'),
    prompt: z.string().min(1).optional().describe('a text'),
  })
  .refine(({ messages, prompt }) => (messages === undefined) !== (prompt === undefined))
  .meta({ oneOf: [{ required: ['messages'] }, { required: ['prompt'] }] })
  .describe('an object with either messages or prompt');

const common = {
  prompts: z.array(prompt).min(2).max(MAX_PROMPTS).optional().describe(`a list of 2 to ${MAX_PROMPTS} prompts`),
  limit: count(2, MAX_PROMPTS),
  seed: count(0, 2 ** 32 - 1),
};

const weights = <const Formats extends readonly [string, ...string[]]>(formats: Formats) =>
  z
    .enum(formats)
    .optional()
    .describe(`one of ${formats.join(', ')}`);

const measured = {
  ...common,
  max_tokens: count(2, 4096),
  weights: weights(['int8', 'int4', 'f32']),
  concurrency: count(1, 64),
};

export const diagnoseBody = z.strictObject({ ...common, max_tokens: count(8, 4096), weights: weights(['int8', 'f32']) });

const temperature = z.number().min(0).max(100).describe('a number from 0 to 100');

export const validateBody = z.strictObject({
  ...measured,
  temperature: z
    .union([temperature, z.array(temperature).min(1).max(8)])
    .optional()
    .describe('a temperature, or a list of at most 8'),
  draft_tokens: z
    .union([z.number().int().min(1).max(256), z.literal('auto')])
    .optional()
    .describe('an integer, or auto'),
  speed_prompts: count(0, 64),
  speed_repeats: count(1, 16),
  min_acceptance_length: amount(0, 1000),
  min_draft_acceptance_rate: share(),
  min_first_slot_accuracy: share(),
  min_streak: amount(0, 1000),
  min_speed_up: amount(0, 1000),
  max_calibration_error: share(),
});

export const compareBody = z.strictObject({
  ...measured,
  drafters: z
    .array(z.string().min(1))
    .min(2)
    .max(MAX_DRAFTERS)
    .refine((names) => new Set(names).size === names.length)
    .meta({ uniqueItems: true })
    .describe(`a list of 2 to ${MAX_DRAFTERS} different drafter names`),
  temperature: temperature.optional(),
  draft_tokens: count(1, 256),
  margin: amount(0, 1000),
});

/** Options of the command among the fields of a body. */
export function settingsOf(
  fields: Readonly<Record<string, string | number | readonly number[] | undefined>>,
): Readonly<Record<string, string | number>> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === 'object' ? value.join(',') : value]],
    ),
  );
}
