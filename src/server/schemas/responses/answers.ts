/** Answers of the two generation routes, whole and in chunks. */
import { z } from 'zod';
import { answerStatistics, count, metaInfo, usage } from './statistics.ts';

const tokenIds = z.array(count);
const logprob = z.number().max(0);

const promptLogprobs = z.array(
  z.record(z.string(), z.strictObject({ logprob, rank: z.int().min(1), decoded_token: z.string() })).nullable(),
);

const envelope = {
  synthetic: z.literal(true).optional().meta({ description: 'Drafts were kept by given rates: the text is worth nothing.' }),
  id: z.string(),
  created: count,
  model: z.string(),
  system_fingerprint: z.string(),
};

const stopReason = z.union([z.string(), count]).nullable();

function whole<const Name extends string, Choice extends z.ZodType>(object: Name, choice: Choice) {
  return z.strictObject({
    ...envelope,
    object: z.literal(object),
    choices: z.array(choice).min(1),
    usage,
    ...answerStatistics,
    prompt_logprobs: promptLogprobs.optional(),
    prompt_token_ids: tokenIds.optional(),
  });
}

function chunk<const Name extends string, Choice extends z.ZodType>(object: Name, choice: Choice) {
  return z.strictObject({
    ...envelope,
    object: z.literal(object),
    choices: z.array(choice).max(1),
    usage: usage.nullable().optional(),
    ...z.strictObject(answerStatistics).partial().shape,
    prompt_logprobs: promptLogprobs.optional(),
    prompt_token_ids: tokenIds.optional(),
  });
}

const completionChoice = z.strictObject({
  index: count,
  text: z.string(),
  logprobs: z
    .strictObject({
      tokens: z.array(z.string()),
      token_logprobs: z.array(logprob.nullable()),
      top_logprobs: z.array(z.record(z.string(), logprob).nullable()),
      text_offset: z.array(count),
    })
    .nullable(),
  finish_reason: z.enum(['stop', 'length']),
  stop_reason: stopReason,
  prompt_logprobs: promptLogprobs.optional(),
  token_ids: tokenIds.optional(),
  prompt_token_ids: tokenIds.optional(),
  meta_info: metaInfo.optional(),
});

export const completion = whole('text_completion', completionChoice);

export const completionChunk = chunk(
  'text_completion',
  completionChoice.extend({ finish_reason: completionChoice.shape.finish_reason.nullable() }),
);

const toldToken = { token: z.string(), logprob, bytes: z.array(z.int().min(0).max(255)) };

const chatDetails = {
  logprobs: z
    .strictObject({
      content: z.array(z.strictObject({ ...toldToken, top_logprobs: z.array(z.strictObject(toldToken)) })),
      refusal: z.null(),
    })
    .nullable(),
  token_ids: tokenIds.optional(),
  meta_info: metaInfo.optional(),
};

const chatFinish = z.enum(['stop', 'length', 'tool_calls']);

const reasoning = { reasoning: z.string().optional(), reasoning_content: z.string().optional() };

const toolCall = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string(), arguments: z.string() }),
});

export const chatCompletion = whole(
  'chat.completion',
  z.strictObject({
    index: count,
    message: z.strictObject({
      role: z.literal('assistant'),
      content: z.string().nullable(),
      refusal: z.null(),
      ...reasoning,
      tool_calls: z.array(toolCall).min(1).optional(),
    }),
    ...chatDetails,
    finish_reason: chatFinish,
    stop_reason: stopReason,
  }),
);

export const chatCompletionChunk = chunk(
  'chat.completion.chunk',
  z.strictObject({
    index: count,
    delta: z.strictObject({
      role: z.literal('assistant').optional(),
      content: z.string().optional(),
      ...reasoning,
      tool_calls: z
        .array(
          z.strictObject({
            index: count,
            id: z.string().optional(),
            type: z.literal('function').optional(),
            function: z.strictObject({ name: z.string().optional(), arguments: z.string() }),
          }),
        )
        .optional(),
    }),
    ...chatDetails,
    finish_reason: chatFinish.nullable(),
    stop_reason: stopReason.optional(),
  }),
);
