/** Bodies of the requests that measure drafters: options of the commands, by their names in snake case. */
import { z } from 'zod';
import { TEMPLATE_FIELDS } from '../chat/template-fields.ts';
import type { Settings } from './validation-runner.ts';

const MAX_PROMPTS = 1000;
const MAX_DRAFTERS = 8;
const MAX_RUNS = 8;

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

const flag = () => z.boolean().optional().describe('a boolean');

/** Below a folder that the server was started with. */
const path = () =>
  z
    .string()
    .min(1)
    .max(1024)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL, as every engine reads it: not all know `\0`
    .regex(/^[^\x00]*$/)
    .describe('a relative path of at most 1024 characters');

const common = {
  prompts: z
    .array(prompt)
    .min(2)
    .max(MAX_PROMPTS)
    .refine((prompts) => new Set(prompts.map(({ id }, i) => id ?? `line-${i + 1}`)).size === prompts.length)
    .optional()
    .describe(`a list of 2 to ${MAX_PROMPTS} prompts with different ids`),
  chat_template_kwargs: TEMPLATE_FIELDS.chat_template_kwargs,
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
  out: path().optional(),
  resume: flag(),
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
  out: path().optional(),
});

export const recordBody = z.strictObject({
  ...common,
  max_tokens: count(2, 4096),
  weights: weights(['int8', 'int4', 'f32']),
  taps: z
    .array(z.number().int().min(-1).max(1000))
    .min(1)
    .max(256)
    .optional()
    .describe('a list of layer ids; -1 is the embedding'),
  no_last_hidden_state: flag(),
  precision: z.enum(['f32', 'bf16', 'f16']).optional().describe('one of f32, bf16, f16'),
  turns: z.enum(['all', 'last']).optional().describe('one of all, last'),
  temperature: temperature.optional(),
  sequences: count(1, 256),
  max_rows: count(32, 65_536),
  shard_rows: count(1, 2 ** 24),
  out: path(),
  resume: flag(),
});

export const exportHardBody = z.strictObject({
  validation: path(),
  max_accepted: count(0, 256),
  min_target_probability: share(),
  limit: count(1, 1_000_000),
  out: path().optional(),
});

/** `name=path` or a path, as the command takes it. */
const namedPaths = () =>
  z.array(path()).min(1).max(MAX_RUNS).describe(`a list of 1 to ${MAX_RUNS} paths, perhaps with name= before them`);

export const watchBody = z.strictObject({
  ...measured,
  watch: namedPaths(),
  training_log: namedPaths().optional(),
  temperature: temperature.optional(),
  min_acceptance_length: amount(0, 1000),
  min_first_slot_accuracy: share(),
  min_streak: amount(0, 1000),
  out: path().optional(),
});

/** Options of the command among the fields of a body. */
export function settingsOf(
  fields: Readonly<Record<string, string | number | boolean | readonly number[] | object | null | undefined>>,
): Settings {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      if (value === undefined || value === null || value === false) return [];
      if (typeof value !== 'object') return [[name, value] as const];
      return [[name, Array.isArray(value) ? value.join(',') : JSON.stringify(value)] as const];
    }),
  );
}
