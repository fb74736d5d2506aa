/** From the engine's events to the JSON of an answer, streamed or whole; what SSE and WebSocket frames carry alike. */
import { AppError } from '../core/app-error.ts';
import type { FinishEvent } from '../core/decode-event.ts';
import type { AnswerFinish, ChoiceWriter } from './answer-format.ts';
import { type AnswerHead, answerExtension, answerStatistics, choiceStatistics } from './answer-statistics.ts';
import type { ChoiceEvent } from './choice-events.ts';
import type { GenerationPlan } from './generation-plan.ts';
import { type CountedTokens, usage } from './usage.ts';

type Events = AsyncIterable<ChoiceEvent>;
/** The end of an answer that its caller sees. */
type ToldFinish = FinishEvent & AnswerFinish;

/** The chunks of a streamed answer, in order; `[DONE]` is the transport's. */
export async function* answerChunks(head: AnswerHead, events: Events): AsyncGenerator<object, void, undefined> {
  const { plan } = head;
  const { format, params } = plan;
  const writers = choiceWriters(plan);
  const finishes: (ToldFinish | undefined)[] = plan.requests.map(() => undefined);
  let completionTokens = 0;
  const chunk = (choices: readonly object[], last: object = {}) => {
    // What is reused of a prompt is told when an answer to it has ended.
    const running = params.continuousUsage ? usage(counted(plan, writers, completionTokens, finishes)) : null;
    return {
      ...envelope(head, format.chunkObject, choices),
      ...(params.includeUsage ? { usage: running } : {}),
      ...last,
    };
  };
  for (const [choice, writer] of writers.entries()) {
    const opening = writer.opening();
    if (opening !== null) yield chunk([opening], choice === 0 ? writer.answerFields() : {});
  }
  for await (const { choice, event } of events) {
    if (event.type === 'tokens') {
      if (params.maxTokens !== 0) completionTokens += event.tokens.length;
      for (const delta of writers[choice]!.delta(event)) yield chunk([delta]);
      continue;
    }
    const finish = toldFinish(event, plan);
    finishes[choice] = finish;
    const isLast = !finishes.includes(undefined);
    // Without a usage chunk the statistics ride on the chunk that ends the last choice.
    const statistics = isLast && !params.includeUsage ? answerStatistics(head, allFinished(finishes)) : {};
    const deltas = writers[choice]!.final(finish);
    for (const delta of deltas.slice(0, -1)) yield chunk([delta]);
    yield chunk([{ ...deltas.at(-1), ...choiceStatistics(plan, finish) }], statistics);
  }
  const complete = allFinished(finishes);
  if (params.includeUsage) {
    yield {
      ...envelope(head, format.chunkObject, []),
      usage: usage(counted(plan, writers, sumTokens(complete), complete)),
      ...answerStatistics(head, complete),
    };
  }
  const extension = answerExtension(plan, complete);
  if (extension !== null) yield { ...envelope(head, format.chunkObject, []), ...extension };
}

/** The whole answer as one object. */
export async function wholeAnswer(head: AnswerHead, events: Events): Promise<object> {
  const { format, requests } = head.plan;
  const writers = choiceWriters(head.plan);
  const finishes: (ToldFinish | undefined)[] = requests.map(() => undefined);
  for await (const { choice, event } of events) {
    if (event.type === 'tokens') writers[choice]!.delta(event);
    else finishes[choice] = toldFinish(event, head.plan);
  }
  const complete = allFinished(finishes);
  const choices = complete.map((finish, choice) => ({
    ...writers[choice]!.whole(finish),
    ...choiceStatistics(head.plan, finish),
  }));
  return {
    ...envelope(head, format.object, choices),
    ...writers[0]!.answerFields(),
    usage: usage(counted(head.plan, writers, sumTokens(complete), complete)),
    ...answerStatistics(head, complete),
    ...answerExtension(head.plan, complete),
  };
}

function choiceWriters({ format, params, prompts, requests }: GenerationPlan): readonly ChoiceWriter[] {
  return requests.map((_, choice) => format.writer(choice, prompts[Math.floor(choice / params.n)]!));
}

function envelope(head: AnswerHead, object: string, choices: readonly object[]) {
  return {
    // First, so that nobody reads the text before it.
    ...(isSynthetic(head.plan) ? { synthetic: true } : {}),
    id: head.plan.id,
    object,
    created: head.created,
    model: head.plan.engine.info.model,
    system_fingerprint: head.systemFingerprint,
    choices,
  };
}

/** Whether drafts of this request are kept by given rates: then the text is not the model's. */
function isSynthetic({ engine, requests }: GenerationPlan): boolean {
  const { drafters } = engine.info;
  const name = requests[0]?.drafter ?? drafters[0]?.name;
  return drafters.some((drafter) => drafter.name === name && drafter.synthetic);
}

/**
 * How an answer ended for its caller: one that was to have no tokens has none, though the prompt's own step chose one.
 * `runChoices` turns `aborted` into an error before it comes here, and an `error` is thrown.
 */
function toldFinish(event: FinishEvent, { params }: GenerationPlan): ToldFinish {
  const { reason } = event;
  if (reason === 'aborted' || reason === 'error') {
    throw new AppError('internal', `Expected an answer that ended by itself, got one that ended with ${reason}.`);
  }
  if (params.maxTokens !== 0) return { ...event, reason };
  const timing = { ...event.timing, firstTokenMs: null };
  return { ...event, reason: 'length', stopReason: null, completionTokens: 0, timing };
}

function allFinished(finishes: readonly (ToldFinish | undefined)[]): readonly ToldFinish[] {
  return finishes.map((finish, choice) => {
    if (finish === undefined) {
      throw new AppError('internal', `Expected the engine to finish choice ${choice}, got the end of its events.`);
    }
    return finish;
  });
}

function counted(
  plan: GenerationPlan,
  writers: readonly ChoiceWriter[],
  completion: number,
  finishes: readonly (ToldFinish | undefined)[],
): CountedTokens {
  const reasoning = writers.map(({ reasoningTokens }) => reasoningTokens).filter((tokens) => tokens !== null);
  return {
    prompt: plan.promptTokens,
    completion,
    cached: cachedTokens(plan, finishes),
    reasoning: reasoning.length === 0 ? null : reasoning.reduce((sum, tokens) => sum + tokens),
  };
}

/** Each prompt counts once, as its first answer found it. */
function cachedTokens({ params }: GenerationPlan, finishes: readonly (ToldFinish | undefined)[]): number {
  return finishes.reduce((sum, finish, choice) => sum + (choice % params.n === 0 ? (finish?.cachedTokens ?? 0) : 0), 0);
}

function sumTokens(finishes: readonly FinishEvent[]): number {
  return finishes.reduce((sum, finish) => sum + finish.completionTokens, 0);
}
