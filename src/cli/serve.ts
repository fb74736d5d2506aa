/** `blockdraft serve`: the composition of engine and server, and their life. */
import { mkdirSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import type { EngineObserver, EngineStatus } from '../engine/engine.ts';
import { openEngine } from '../engine/open-engine.ts';
import { createLogger, type Logger } from '../server/logger.ts';
import { createServerMetrics } from '../server/metrics.ts';
import { DEFAULT_SERVER_CONFIG } from '../server/server-config.ts';
import { startServer } from '../server/start-server.ts';
import type { JobFolders } from '../server/validation/job-folders.ts';
import { ValidationJobs } from '../server/validation/validation-jobs.ts';
import { auditLog } from './audit-log.ts';
import { banner } from './banner.ts';
import { chosenWeights } from './chosen-weights.ts';
import { formatBytes } from './format.ts';
import { createProgressBar, type ProgressBar } from './progress-bar.ts';
import { readApiKeys } from './read-api-keys.ts';
import { realFolder } from './real-folder.ts';
import { DEFAULT_DRAFTERS, type ServeOptions } from './serve-options.ts';
import { StatisticsLog } from './statistics-log.ts';
import { validationProcess } from './validation-process.ts';
import { replaceable, watchDrafter, watchedFolders } from './watch-drafter.ts';

/** For what is still to be written when all answers have ended. */
const LAST_WORD_MS = 1000;
/** Time between two looks for new checkpoints. */
const WATCH_POLL_MS = 5000;

/** Runs until a signal ends it. */
export async function serve(options: ServeOptions, version: string): Promise<void> {
  // Keys, and an address that may hold a password, are told to nobody.
  const { apiKey, apiKeyFile, otlpEndpoint: _, ...serverArguments } = options;
  const apiKeys = [...apiKey, ...(apiKeyFile === undefined ? [] : readApiKeys(apiKeyFile))];
  if (options.allowDrafterSwap && (options.drafterDir === undefined || apiKeys.length === 0)) {
    throw new AppError(
      'invalid_config',
      'Expected --allow-drafter-swap with --api-key and --drafter-dir, got it without one of them; add it',
    );
  }
  if (options.allowValidation && apiKeys.length === 0) {
    throw new AppError('invalid_config', 'Expected --allow-validation with --api-key, got it without; add a key');
  }
  const watched = watchedFolders(options.watchDrafter);
  let status: EngineStatus = { state: 'loading' };
  const logger = createLogger({ format: options.logFormat, level: options.logLevel });
  const tracing = await openTracing(options, version, logger);
  const model = options.servedModelName ?? basename(resolve(options.target));
  const synthetic = options.syntheticAcceptance !== undefined;
  const load = () => (status.state === 'ready' || status.state === 'draining' ? status.engine.load() : null);
  const metrics = createServerMetrics({
    modelName: model,
    version,
    load,
    vllmAliases: options.vllmMetricAliases,
    synthetic,
  });
  const validation = options.allowValidation ? new ValidationJobs(validationProcess(options), jobFolders(options)) : null;
  const server = await startServer({
    host: options.host,
    port: options.port,
    status: () => status,
    metrics,
    logger,
    tracer: tracing,
    version,
    validation,
    serverArguments,
    config: {
      ...DEFAULT_SERVER_CONFIG,
      apiKeys,
      allowedOrigins: options.allowedOrigin,
      corsOrigins: options.corsOrigin,
      allowTrace: options.allowTrace,
      allowDrafterSwap: options.allowDrafterSwap,
      perRequestSpecMetrics: options.perRequestSpecDecodeMetrics,
      reasoningParser: options.reasoningParser,
      maxRequestsPerKey: options.maxRequestsPerKey ?? null,
      requestTimeoutMs: options.requestTimeout === undefined ? null : options.requestTimeout * 1000,
      closeGraceMs: LAST_WORD_MS,
    },
  });

  const stopping = new AbortController();
  const stopped = stopOnSignal(logger, () => stopping.abort());
  const intervalMs = options.logStatsInterval * 1000;
  const statistics = intervalMs === 0 ? null : new StatisticsLog({ logger, load, intervalMs, synthetic });
  const bars = new Map<string, ProgressBar>();
  try {
    const weights = await chosenWeights(options);
    const opened = await openEngine({
      target: options.target,
      // A module of one's own takes the place of the drafter that nobody asked for.
      drafters: options.drafterModule.length > 0 && options.drafter === DEFAULT_DRAFTERS ? [] : options.drafter,
      drafterModules: options.drafterModule,
      syntheticAcceptance: options.syntheticAcceptance ?? null,
      finalTap: options.finalTap,
      allowUnclaimed: options.allowUnclaimed,
      split: options.split ?? null,
      shadow: options.shadow.length === 0 ? null : { drafters: options.shadow, rate: options.shadowRate },
      auditRate: options.auditRate,
      drafterDirs: [...(options.allowDrafterSwap ? [options.drafterDir ?? ''] : []), ...watched.map(({ path }) => path)],
      draftTokens: options.draftTokens,
      weights,
      device: options.device === 'cuda' ? { kind: 'cuda', deviceId: options.deviceId } : { kind: 'cpu' },
      threads: options.threads,
      maxContext: options.maxContext ?? null,
      maxSequences: options.maxNumSeqs,
      maxRows: options.maxNumBatchedTokens,
      maxWaiting: options.maxNumQueuedReqs,
      limits: {
        maxStepMs: options.maxStepMs,
        drafterTimeoutMs: options.drafterTimeoutMs,
        maxWaitingTokens: options.maxNumQueuedTokens,
        kvCacheBytes: options.kvCacheBytes ?? null,
        prefixCacheBytes: options.prefixCacheBytes,
      },
      servedModelName: model,
      cacheDir: options.cacheDir ?? null,
      observers: [
        metrics,
        ...(tracing === null ? [] : [tracing]),
        ...(statistics === null ? [] : [statistics]),
        drafterLog(logger),
        auditLog(logger, options.auditDir ?? null, { version, model, options: auditFacts({ ...options, weights }) }),
      ],
      signal: stopping.signal,
      onProgress(what, done, total) {
        const bar = bars.get(what) ?? (options.logFormat === 'json' ? progressLine(logger, what) : progressBar(what));
        bars.set(what, bar);
        bar.update(done, total);
        if (done >= total) bar.end();
      },
    });
    const { engine } = opened;
    try {
      for (const { name } of watched) replaceable(engine, name);
      status = { state: 'ready', engine };
      // For people; what collects lines of JSON gets the same facts as one of them.
      if (options.logFormat === 'pretty' || process.stdout.isTTY) {
        process.stdout.write(`${banner(opened.summary, server.url, model, apiKeys.length > 0)}\n`);
      }
      if (options.logFormat === 'json') logger.info({ ...opened.summary, model, version, url: server.url }, 'listening');
      if (options.syntheticAcceptance !== undefined) {
        const { syntheticAcceptance } = options;
        logger.warn(
          { syntheticAcceptance },
          'drafts are kept by given rates, whatever the model says: the text is worth nothing',
        );
      }
      for (const { name, path } of watched) {
        watchDrafter({ engine, name, folder: path, pollMs: WATCH_POLL_MS, signal: stopping.signal, logger }).catch(
          (error: unknown) => logger.error({ drafter: name, error }, 'watching for drafters ended'),
        );
      }
      opened.warmUp().catch((error: unknown) => logger.error({ error }, 'preparing for several sequences failed'));
      await stopped;
      status = { state: 'draining', engine };
      server.drain();
      await validation?.close();
      // Until the last answer has ended, load balancers can ask and are told that this server is not ready.
      const deadline = performance.now() + options.shutdownTimeout * 1000;
      await engine.drain(AbortSignal.timeout(options.shutdownTimeout * 1000));
      // The engine runs ahead of slow readers; and its last word is to reach whoever waits at the deadline, too.
      await server.close(Math.max(deadline - performance.now(), LAST_WORD_MS));
    } finally {
      await engine[Symbol.asyncDispose]();
    }
  } catch (error) {
    for (const bar of bars.values()) bar.end();
    status = { state: 'failed', message: error instanceof Error ? error.message : String(error) };
    await server.close();
    if (!stopping.signal.aborted) throw error;
  } finally {
    statistics?.[Symbol.dispose]();
    await tracing?.shutdown();
    // The code of a drafter that hangs may keep the process alive, which has nothing to do any more.
    setTimeout(() => process.exit(), LAST_WORD_MS).unref();
  }
}

function progressBar(what: string): ProgressBar {
  return createProgressBar(`Preparing ${what}`, formatBytes);
}

/** Where each line is to be JSON: one when it begins. */
function progressLine(logger: Logger, what: string): ProgressBar {
  let isTold = false;
  return {
    update(_done, total) {
      if (!isTold) logger.info({ what, bytes: total }, 'preparing weights');
      isTold = true;
    },
    end: () => undefined,
  };
}

/** Loaded with its option only: it costs a server without one nothing. */
async function openTracing({ otlpEndpoint }: ServeOptions, version: string, logger: Logger) {
  if (otlpEndpoint === undefined) return null;
  const { openOtlpTracing } = await import('../telemetry/otlp-tracing.ts');
  return openOtlpTracing({ endpoint: otlpEndpoint, version, logger });
}

function jobFolders({ validationDir, drafterDir }: ServeOptions): JobFolders {
  if (validationDir !== undefined) mkdirSync(validationDir, { recursive: true });
  const real = (folder: string | undefined) => (folder === undefined ? null : realFolder(folder));
  return { output: real(validationDir), runs: real(drafterDir) };
}

/** What decides an answer beside its request. Keys stay out of it. */
function auditFacts({ target, drafter, drafterModule, draftTokens, weights, device, maxContext }: ServeOptions) {
  return { target, drafter, drafterModule, draftTokens, weights, device, maxContext };
}

function drafterLog(logger: Logger): EngineObserver {
  return {
    onStart: () => undefined,
    onStep: () => undefined,
    onFinish: () => undefined,
    onQuarantine: (drafter, reason) => logger.warn({ drafter, reason }, 'drafter left out'),
    onFewerSequences: (maxSequences, reason) => logger.error({ maxSequences, reason }, 'fewer sequences at once'),
    onSwap({ drafter, path, state, before, after, reason }) {
      const figures = { before: before?.mean, after: after?.mean, ...(reason === null ? {} : { reason }) };
      logger[state === 'rolled-back' ? 'warn' : 'info']({ drafter, path, state, ...figures }, 'drafter swap');
    },
    onSwapFailure: (drafter, path, reason) => logger.warn({ drafter, path, reason }, 'drafter swap failed'),
    onShadowFailure: (drafter, reason) => logger.warn({ drafter, reason }, 'shadow drafter failed'),
  };
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
function stopOnSignal(logger: Logger, onStop: () => void): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (stopping) process.exit(1);
        stopping = true;
        logger.info({ signal }, 'stopping');
        onStop();
        resolve();
      });
    }
  });
}
