/** Reads one streamed chat and takes its times. */
import { createHash } from 'node:crypto';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import type { RequestRecord, SpeculationCounts } from './request-record.ts';

const chunkSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z.looseObject({ content: z.string().nullish(), reasoning: z.string().nullish() }).optional(),
      }),
    )
    .optional(),
  usage: z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish(),
  metrics: z
    .looseObject({
      speculative_decoding: z
        .looseObject({
          num_spec_steps: z.number(),
          num_draft_tokens: z.number(),
          num_accepted_draft_tokens: z.number(),
          acceptance_histogram_by_draft_length: z.record(z.string(), z.array(z.number())),
        })
        .nullish(),
    })
    .optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});

export interface StreamTimes {
  /** When the request was sent, on the clock of `now`. */
  readonly sentAt: number;
  readonly now: () => number;
}

export type StreamFigures = Omit<RequestRecord, 'prompt' | 'category'>;

/** Never rejects but for an abort: what went wrong is told as the record's error. */
export async function readChatStream(response: Response, { sentAt, now }: StreamTimes): Promise<StreamFigures> {
  if (!response.ok || response.body === null) return failed(`${response.status} ${(await response.text()).slice(0, 300)}`);
  const itl: number[] = [];
  const itlPerToken: number[] = [];
  let told = 0;
  let firstAt: number | null = null;
  let lastAt = sentAt;
  let text = '';
  let last: z.infer<typeof chunkSchema> | null = null;
  let speculation: SpeculationCounts | null = null;
  let isDone = false;
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === '[DONE]') {
      isDone = true;
      break;
    }
    const parsed = chunkSchema.safeParse(parsedJson(data));
    if (!parsed.success) return failed(`a chunk that is none of a chat: ${data.slice(0, 200)}`);
    const chunk = parsed.data;
    if (chunk.error !== undefined) return failed(chunk.error.message);
    if (chunk.usage) last = chunk;
    const counts = chunk.metrics?.speculative_decoding;
    if (counts) speculation = countsOf(counts);
    const delta = chunk.choices?.[0]?.delta;
    const piece = (delta?.content ?? '') + (delta?.reasoning ?? '');
    if (piece === '') continue;
    const time = now();
    const tokens = (chunk.usage?.completion_tokens ?? told) - told;
    told += tokens;
    if (firstAt === null) firstAt = time;
    else {
      itl.push(time - lastAt);
      itlPerToken.push(...new Array<number>(tokens).fill((time - lastAt) / tokens));
    }
    lastAt = time;
    text += piece;
  }
  if (!isDone) return failed('the stream did not end with [DONE]');
  if (!last?.usage || firstAt === null) return failed('the stream had no text, or did not tell its usage');
  const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = last.usage;
  return {
    error: null,
    inputTokens,
    outputTokens,
    ttft: firstAt - sentAt,
    tpot: outputTokens < 2 ? null : (lastAt - firstAt) / (outputTokens - 1),
    e2el: lastAt - sentAt,
    itl,
    itlPerToken,
    text: createHash('sha256').update(text).digest('hex').slice(0, 16),
    speculation,
  };
}

export function failed(error: string): StreamFigures {
  return {
    error,
    inputTokens: 0,
    outputTokens: 0,
    ttft: 0,
    tpot: null,
    e2el: 0,
    itl: [],
    itlPerToken: [],
    text: '',
    speculation: null,
  };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

interface ToldCounts {
  readonly num_spec_steps: number;
  readonly num_draft_tokens: number;
  readonly num_accepted_draft_tokens: number;
  readonly acceptance_histogram_by_draft_length: Readonly<Record<string, readonly number[]>>;
}

function countsOf(told: ToldCounts): SpeculationCounts {
  const lengths = Object.entries(told.acceptance_histogram_by_draft_length).map(
    ([length, histogram]) => [Number(length), histogram] as const,
  );
  const longest = Math.max(0, ...lengths.map(([length]) => length));
  const rounds = (position: number, isCounted: (accepted: number) => boolean) =>
    lengths
      .filter(([length]) => length > position)
      .reduce(
        (sum, [, histogram]) => sum + histogram.reduce((all, n, accepted) => (isCounted(accepted) ? all + n : all), 0),
        0,
      );
  const places = Array.from({ length: longest }, (_, position) => position);
  return {
    drafts: told.num_spec_steps,
    draftTokens: told.num_draft_tokens,
    acceptedTokens: told.num_accepted_draft_tokens,
    acceptedPerPosition: places.map((position) => rounds(position, (accepted) => accepted > position)),
    proposedPerPosition: places.map((position) => rounds(position, () => true)),
  };
}
