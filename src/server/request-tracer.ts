/** PORT: who follows requests through the server, such as a tracing system. Calls are short and do not throw. */
import type { GenerationPlan } from './generation-plan.ts';

export interface RequestStart {
  readonly requestId: string;
  readonly transport: 'http' | 'ws';
  readonly method: string;
  readonly path: string;
}

/** Headers of W3C Trace Context, as the caller sent them. */
export interface TraceHeaders {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

export interface RequestTracer {
  begin(start: RequestStart, parent: TraceHeaders): RequestTrace;
}

/** One request on its way. */
export interface RequestTrace {
  /** For whoever goes from a line of the log to the trace: 32 hexadecimal digits. */
  readonly traceId: string;
  /** What is asked for is known and well-formed; the engine is asked next. */
  planned(plan: GenerationPlan): void;
  /** @param errorCode why there was no complete answer, also after status 200 */
  end(status: number, errorCode?: string): void;
}
