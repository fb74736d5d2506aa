import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { FinishEvent } from '../core/decode-event.ts';
import type { EngineObserver, GenerateRequest } from '../engine/engine.ts';
import type { GenerationPlan } from '../server/generation-plan.ts';
import type { RequestStart, RequestTrace, RequestTracer, TraceHeaders } from '../server/request-tracer.ts';
import { answerAttributes, operationOf, planAttributes, speculationAttributes, startAttributes } from './span-attributes.ts';

/** The engine ends what is given up within a step; what it refused never ends there. */
const ENGINE_GRACE_MS = 5_000;

export interface RequestSpansOptions {
  readonly tracer: Tracer;
  /** The caller's part of the trace. */
  readonly parentOf: (headers: TraceHeaders) => Context;
  /** Milliseconds since the epoch. Default: the system's. */
  readonly now?: () => number;
}

/**
 * A span per request with a child for each choice's time in the queue, its prompt and its answer. Children are made when
 * the engine says that a choice has ended, from the times it took: nothing is done while steps run.
 */
export class RequestSpans implements RequestTracer, EngineObserver {
  readonly #options: RequestSpansOptions;
  /** By id of the engine's request. */
  readonly #running = new Map<string, { readonly span: RequestSpan; readonly choice: number }>();
  readonly #open = new Set<RequestSpan>();
  readonly #now: () => number;

  constructor(options: RequestSpansOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  begin(start: RequestStart, headers: TraceHeaders): RequestTrace {
    const { tracer, parentOf } = this.#options;
    const operation = operationOf(start.path);
    const attributes = {
      ...startAttributes(start),
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': 'blockdraft',
    };
    const options = { kind: SpanKind.SERVER, startTime: this.#now(), attributes };
    const span = new RequestSpan(tracer.startSpan(operation, options, parentOf(headers)), operation);
    this.#open.add(span);
    return {
      traceId: span.span.spanContext().traceId,
      planned: (plan) => {
        span.planned(plan);
        for (const [choice, { id }] of plan.requests.entries()) this.#running.set(id, { span, choice });
      },
      end: (status, errorCode) => {
        if (start.transport === 'http') span.span.setAttribute('http.response.status_code', status);
        span.ended(status, errorCode, this.#now());
        if (this.#closeIfDone(span)) return;
        span.grace = setTimeout(() => this.#close(span), ENGINE_GRACE_MS);
        span.grace.unref();
      },
    };
  }

  onStart(): void {
    // Told at the end, with all other times.
  }

  onStep(): void {
    // Steps are in the metrics.
  }

  onFinish(request: GenerateRequest, finish: FinishEvent): void {
    const running = this.#running.get(request.id);
    if (running === undefined) return;
    const { span, choice } = running;
    this.#running.delete(request.id);
    this.#phases(span, choice, finish);
    span.finishes.push(finish);
    this.#closeIfDone(span);
  }

  /** Ends what is still open, as nothing will be told of it any more. */
  close(): void {
    for (const span of this.#open) this.#close(span);
  }

  #phases({ span, choices }: RequestSpan, choice: number, finish: FinishEvent): void {
    const { tracer } = this.#options;
    const { timing, speculation, reason, completionTokens } = finish;
    const { queueMs, firstTokenMs, totalMs } = timing;
    const end = this.#now();
    const at = (ms: number) => end - totalMs + ms;
    const parent = trace.setSpan(ROOT_CONTEXT, span);
    const common = choices > 1 ? { 'blockdraft.choice': choice } : {};
    const child = (name: string, from: number, to: number, attributes = {}) => {
      tracer.startSpan(name, { startTime: at(from), attributes: { ...common, ...attributes } }, parent).end(at(to));
    };
    // An answer that never started waited all of its time.
    child('queue', 0, Math.min(queueMs, totalMs));
    if (queueMs < totalMs) child('prefill', queueMs, firstTokenMs ?? totalMs);
    if (firstTokenMs === null) return;
    child('decode', firstTokenMs, totalMs, {
      'gen_ai.usage.output_tokens': completionTokens,
      'gen_ai.response.finish_reasons': [reason],
      ...speculationAttributes([speculation]),
    });
  }

  #closeIfDone(span: RequestSpan): boolean {
    if (!span.isDone) return false;
    this.#close(span);
    return true;
  }

  #close(span: RequestSpan): void {
    clearTimeout(span.grace);
    for (const [id, other] of this.#running) if (other.span === span) this.#running.delete(id);
    this.#open.delete(span);
    span.close(this.#now());
  }
}

/** The span of a request, until the server and the engine have both ended it. */
class RequestSpan {
  readonly span: Span;
  readonly finishes: FinishEvent[] = [];
  grace: NodeJS.Timeout | undefined;
  choices = 0;
  readonly #operation: string;
  #endTime: number | null = null;

  constructor(span: Span, operation: string) {
    this.span = span;
    this.#operation = operation;
  }

  get isDone(): boolean {
    return this.#endTime !== null && this.finishes.length === this.choices;
  }

  planned(plan: GenerationPlan): void {
    this.choices = plan.requests.length;
    this.span.updateName(`${this.#operation} ${plan.engine.info.model}`);
    this.span.setAttributes(planAttributes(plan));
  }

  ended(status: number, errorCode: string | undefined, time: number): void {
    this.#endTime = time;
    if (errorCode === undefined) return;
    this.span.setAttribute('error.type', errorCode);
    // What the caller did wrong is no error of this server.
    if (status >= 500 || errorCode === 'internal_error') {
      this.span.setStatus({ code: SpanStatusCode.ERROR, message: errorCode });
    }
  }

  close(now: number): void {
    this.span.setAttributes(answerAttributes(this.finishes));
    this.span.end(this.#endTime ?? now);
  }
}
