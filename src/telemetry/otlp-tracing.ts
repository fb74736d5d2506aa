/** Traces of requests, sent to an OpenTelemetry collector by OTLP over HTTP. */
import { defaultTextMapGetter, ROOT_CONTEXT } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Logger } from '../server/logger.ts';
import { RequestSpans } from './request-spans.ts';

/** For what is still to be sent when the server ends. */
const LAST_EXPORT_MS = 3_000;

export interface OtlpTracingOptions {
  /** Of the collector; `v1/traces` is added. */
  readonly endpoint: string;
  readonly version: string;
  /** Is told when spans cannot be sent, and when they can again. */
  readonly logger: Logger;
}

/** A {@link RequestSpans} that sends. */
export class OtlpTracing extends RequestSpans {
  readonly #provider: BasicTracerProvider;
  readonly #logger: Logger;

  constructor(provider: BasicTracerProvider, version: string, logger: Logger) {
    const propagator = new W3CTraceContextPropagator();
    super({
      tracer: provider.getTracer('blockdraft', version),
      parentOf: (headers) => propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter),
    });
    this.#provider = provider;
    this.#logger = logger;
  }

  /** Sends what is left, for at most three seconds. Never rejects. */
  async shutdown(): Promise<void> {
    this.close();
    const late = new Promise<'late'>((resolve) => setTimeout(() => resolve('late'), LAST_EXPORT_MS).unref());
    try {
      const outcome = await Promise.race([this.#provider.shutdown(), late]);
      if (outcome === 'late') this.#logger.warn('sending the last traces took too long');
    } catch (error) {
      this.#logger.warn({ error }, 'sending the last traces failed');
    }
  }
}

/**
 * Sampling, batches, headers and resource are as the environment variables of OpenTelemetry say (`OTEL_TRACES_SAMPLER`,
 * `OTEL_BSP_…`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`). When spans come faster than
 * the collector takes them, they are dropped, never waited for.
 */
export function openOtlpTracing({ endpoint, version, logger }: OtlpTracingOptions): OtlpTracing {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const resource = defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'blockdraft', 'service.version': version }))
    .merge(detectResources({ detectors: [envDetector] }));
  const exporter = new ToldExporter(new OTLPTraceExporter({ url }), logger);
  const provider = new BasicTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
  return new OtlpTracing(provider, version, logger);
}

/** Says when spans cannot be sent: once, until they can again. */
class ToldExporter implements SpanExporter {
  readonly #inner: SpanExporter;
  readonly #logger: Logger;
  #lostSpans = 0;

  constructor(inner: SpanExporter, logger: Logger) {
    this.#inner = inner;
    this.#logger = logger;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#inner.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) {
        if (this.#lostSpans > 0) this.#logger.info({ lostSpans: this.#lostSpans }, 'traces can be sent again');
        this.#lostSpans = 0;
      } else {
        if (this.#lostSpans === 0) this.#logger.warn({ reason: result.error?.message }, 'traces cannot be sent');
        this.#lostSpans += spans.length;
      }
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#inner.forceFlush?.();
  }
}
