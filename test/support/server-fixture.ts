/** The server on a fake engine, with everything that a test may want to look at. */
import type { EngineStatus } from '../../src/engine/engine.ts';
import type { AppOptions } from '../../src/server/app.ts';
import { createServerMetrics, type ServerMetrics } from '../../src/server/metrics.ts';
import { DEFAULT_SERVER_CONFIG, type ServerConfig } from '../../src/server/server-config.ts';
import { FakeEngine, type FakeEngineOptions } from './fake-engine.ts';
import { type LogLine, recordingLogger } from './recording-logger.ts';

export interface ServerFixtureOptions {
  readonly engine?: FakeEngineOptions;
  readonly config?: Partial<ServerConfig>;
  readonly status?: (engine: FakeEngine) => EngineStatus;
  readonly vllmAliases?: boolean;
  readonly processMetrics?: boolean;
}

export interface ServerFixture {
  readonly engine: FakeEngine;
  readonly metrics: ServerMetrics;
  readonly log: LogLine[];
  /** Arguments of `createApp`, and of `startServer` once a host and a port are added. */
  readonly options: AppOptions;
}

export const RANDOM_SEED = 4242;

/** A fresh engine, registry and log. */
export function createServerFixture(options: ServerFixtureOptions = {}): ServerFixture {
  const log: LogLine[] = [];
  const metrics = createServerMetrics({
    modelName: 'fake-model',
    version: '9.9.9',
    load: () => engine.load(),
    vllmAliases: options.vllmAliases ?? false,
    processMetrics: options.processMetrics ?? false,
  });
  const engine: FakeEngine = new FakeEngine({ observer: metrics, ...options.engine });
  const status = options.status ?? ((ready: FakeEngine): EngineStatus => ({ state: 'ready', engine: ready }));
  return {
    engine,
    metrics,
    log,
    options: {
      status: () => status(engine),
      config: { ...DEFAULT_SERVER_CONFIG, ...options.config },
      metrics,
      logger: recordingLogger(log),
      version: '9.9.9',
      clock: engine.clock,
      randomSeed: () => RANDOM_SEED,
    },
  };
}
