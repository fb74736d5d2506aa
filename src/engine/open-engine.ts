/** Loads a target, its drafter and its tokenizer, and puts an engine on top. */

import { realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { doublings } from '../core/doublings.ts';
import { orAbandon } from '../core/or-abandon.ts';
import { AutoLength } from '../decode/draft-length/auto-length.ts';
import type { CostModel } from '../decode/draft-length/cost-model.ts';
import { FIXED_LENGTH } from '../decode/draft-length/fixed-length.ts';
import { inPlaceOf, parseFinalTaps } from '../drafter/dflash/final-taps.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { DrafterSource } from '../drafter/drafter-context.ts';
import { drafterFromModule, drafterFromName } from '../drafter/registry.ts';
import { syntheticSource } from '../drafter/synthetic/synthetic-source.ts';
import { GrammarService } from '../grammar/grammar-service.ts';
import type { Device } from '../onnx/device.ts';
import { openRuntime } from '../onnx/runtime.ts';
import { readModelConfig } from '../target/hf-config.ts';
import { type LoadTargetOptions, loadTarget } from '../target/load-target.ts';
import type { Target } from '../target/target.ts';
import { loadChatTemplate } from '../text/chat-template.ts';
import { PromptEncoder } from '../text/prompt-encoder.ts';
import { loadTokenizer } from '../text/tokenizer.ts';
import type { ShadowOptions } from './admission.ts';
import { borrowTarget } from './borrow-target.ts';
import { planCacheBytes } from './cache-budget.ts';
import { DecodeEngine } from './decode-engine.ts';
import { checkCompared, checkKnown, parseSplit } from './drafter-split.ts';
import type { EngineObserver } from './engine.ts';
import { DEFAULT_ENGINE_LIMITS, type EngineLimits } from './engine-limits.ts';
import { type GuardedDrafter, guardFirstCalls } from './guarded-drafter.ts';
import { loadDraftDecoder } from './load-draft-decoder.ts';
import { loadReplacement } from './load-replacement.ts';
import { measureCosts, measureWhenIdle } from './measure-costs.ts';
import { MAX_PREFIXES } from './prefix-cache.ts';
import type { ServedDrafter } from './served-drafter.ts';
import { tryDrafter } from './try-drafter.ts';

/** Time to end by itself for what is being loaded when nobody wants it any more. */
const ABANDON_MS = 2000;

export interface OpenEngineOptions {
  /** Folder of the target. */
  readonly target: string;
  /** A built-in drafter's name or a drafter's folder each, `name=` before it to name it; the first is the default. */
  readonly drafters: readonly string[];
  /** A user's own drafter modules, in front of {@link drafters}. */
  readonly drafterModules: readonly string[];
  /** Acceptance rates of a synthetic drafter for capacity tests, which is the default then; null: none. */
  readonly syntheticAcceptance?: string | null;
  /** On which side of the final norm drafters tap the last layer, as {@link parseFinalTaps} reads it. */
  readonly finalTap?: readonly string[];
  /** Accept models and drafters with tensors and settings that nothing here knows. */
  readonly allowUnclaimed?: boolean;
  /** Length of each draft, or `auto`: as long as it pays on this machine and text. */
  readonly draftTokens: number | 'auto';
  readonly weights: LoadTargetOptions['format'];
  readonly device: Device;
  readonly threads: number;
  /** Null: as long as the model was made for. */
  readonly maxContext: number | null;
  readonly maxSequences: number;
  /** Rows of one step. */
  readonly maxRows: number;
  readonly maxWaiting: number;
  /** What is left out is as in {@link DEFAULT_ENGINE_LIMITS}. */
  readonly limits?: Partial<EngineLimits>;
  /** Name under which the model is served; null: the folder's. */
  readonly servedModelName: string | null;
  /** Null: the user's cache folder. */
  readonly cacheDir: string | null;
  readonly observers: readonly EngineObserver[];
  /** Shares of the requests that name no drafter, as {@link parseSplit} reads them; null: all get the first one. */
  readonly split?: string | null;
  /** Drafters that are scored on a share of the requests, without serving them. */
  readonly shadow?: ShadowOptions | null;
  /** Share of the answers that are decoded again without speculation in idle time; default 0. */
  readonly auditRate?: number;
  /** Folders whose drafters may take the place of loaded ones while the engine runs; relative paths are of the first. */
  readonly drafterDirs?: readonly string[];
  /** @param what is being prepared */
  readonly onProgress?: (what: string, doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

/** The engine, and facts about it that a person wants to see. */
export interface OpenedEngine {
  readonly engine: DecodeEngine;
  /** The engine's own, for measurements beside it; use them only while it is idle. */
  readonly target: Target;
  readonly drafters: readonly ServedDrafter[];
  readonly summary: EngineSummary;
  /**
   * Loads what several sequences at once need, until when the first such step waits, and measures what they cost while no
   * request wants the target.
   */
  warmUp(): Promise<void>;
}

export interface EngineSummary {
  readonly target: string;
  readonly family: string;
  readonly weights: string;
  readonly drafters: readonly DrafterSummary[];
  readonly device: string;
  readonly threads: number;
  readonly runtimeVersion: string;
  readonly maxContext: number;
  readonly maxSequences: number;
  /** Memory of the process with the models loaded. */
  readonly modelBytes: number;
  /** Memory for the caches of running requests. */
  readonly cacheBytes: number;
  /** Memory for the beginnings of sequences that have ended. */
  readonly prefixCacheBytes: number;
  /** Why beginnings are not reused, or not for all; null when they are. */
  readonly prefixCacheNote: string | null;
  /** What was left of the machine's memory with the models loaded. */
  readonly availableBytes: number;
}

export interface DrafterSummary {
  readonly name: string;
  readonly kind: string;
  readonly taps: readonly number[];
  /** The longest draft. */
  readonly draftTokens: number;
  readonly length: 'auto' | 'fixed';
}

/** Drafters and targets load what several sequences need in the background. */
interface WarmsUp {
  warmUp?(): Promise<void>;
}

/**
 * @throws AppError naming what cannot be loaded and why; AbortedError when the signal ended it. Code of the user's that does
 *   not end then, such as a drafter module's, is left alone.
 */
export async function openEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  const { signal } = options;
  return signal === undefined ? open(options) : orAbandon('Loading', open(options), signal, ABANDON_MS);
}

async function open(options: OpenEngineOptions): Promise<OpenedEngine> {
  if (options.maxRows < options.maxSequences) {
    throw new AppError(
      'invalid_config',
      `Expected at least ${options.maxSequences} rows per step, one for each sequence, got ${options.maxRows}`,
    );
  }
  const limits: EngineLimits = { ...DEFAULT_ENGINE_LIMITS, ...options.limits };
  const split = options.split == null ? null : parseSplit(options.split);
  const folder = resolve(options.target);
  const config = readModelConfig(folder);
  const { syntheticAcceptance = null, allowUnclaimed = false } = options;
  const finalTaps = parseFinalTaps(options.finalTap ?? []);
  const sources = [
    ...(syntheticAcceptance === null ? [] : [syntheticSource(syntheticAcceptance)]),
    ...(await Promise.all(options.drafterModules.map(named(drafterFromModule)))),
    ...(await Promise.all(
      options.drafters.map(named((chosen, name) => drafterFromName(chosen, folder, { name, finalTaps, allowUnclaimed }))),
    )),
  ].filter((source) => source !== null);
  refuseEqualNames(sources);
  const synthetic = syntheticAcceptance !== null;
  const known = sources.map(({ name }) => ({ name, synthetic }));
  checkCompared('--shadow', options.shadow?.drafters ?? [], known);
  checkKnown('--final-tap', finalTaps.named.keys(), known);
  checkCompared('--split', split?.keys() ?? [], [...known, { name: 'none', synthetic }]);
  const runtime = openRuntime({ threads: options.threads });
  const [tokenizer, chatTemplate] = await Promise.all([loadTokenizer(folder), loadChatTemplate(folder)]);
  const progress = (what: string) =>
    options.onProgress === undefined
      ? {}
      : { onProgress: (done: number, total: number) => options.onProgress?.(what, done, total) };
  const common = {
    runtime,
    device: options.device,
    format: options.weights,
    cacheDir: options.cacheDir,
    allowUnclaimed,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
  const drafterDirs = (options.drafterDirs ?? []).map((path) => realpathSync(path));
  const taps = [...new Set(sources.flatMap((source) => source.taps))];
  const loaded = await loadTarget({
    ...common,
    ...progress('target'),
    folder,
    config,
    maxContext: options.maxContext,
    maxSequences: options.maxSequences,
    maxCaches: options.maxSequences + MAX_PREFIXES,
    maxRows: options.maxRows,
    taps,
    onFewerSequences(most, error) {
      const reason = error instanceof Error ? error.message : String(error);
      for (const observer of options.observers) observer.onFewerSequences?.(most, reason);
    },
  });
  const { target } = loaded;
  const { maxContext } = target.facts;
  const { maxSequences, maxRows } = target;
  // A beginning is kept while its sequence is still there.
  const maxCaches = maxSequences + MAX_PREFIXES + 1;
  const loadDecoder = (decoderFolder: string) =>
    loadDraftDecoder({
      ...common,
      ...progress('draft model'),
      folder: decoderFolder,
      maxContext,
      maxSequences,
      maxCaches,
      maxRows,
    });
  const opened: Drafter[] = [];
  const guards: GuardedDrafter[] = [];
  try {
    for (const source of sources) {
      const { name } = source;
      const drafter = await source.load({ ...common, ...progress(name), target: borrowTarget(loaded), loadDecoder });
      opened.push(drafter);
      guards.push(guardFirstCalls(name, drafter, limits.drafterTimeoutMs));
    }
    const auto = options.draftTokens === 'auto' && opened.length > 0;
    const costs = auto ? await measureCosts(target, guards) : [];
    const weightBytes = await Promise.all(sources.map((source) => source.weightBytes?.(options.weights) ?? 0));
    const drafters = opened.map((drafter, i): ServedDrafter => {
      const { name, folder } = sources[i] as DrafterSource;
      const draftTokens = draftLength(options.draftTokens, drafter);
      return {
        name,
        drafter,
        ...(folder === undefined ? {} : { folder }),
        weightBytes: weightBytes[i] as number,
        draftTokens,
        // Synthetic drafts are as long as they were asked for: what they cost and gain is the question.
        lengths: auto && drafter.synthetic === undefined ? new AutoLength(costs[i] as CostModel) : FIXED_LENGTH,
      };
    });
    const availableBytes = process.availableMemory();
    const { kvCacheBytes, prefixCacheBytes } = limits;
    const onCpu = options.device.kind === 'cpu';
    // Until a swap is decided, two drafters are loaded.
    const swapBytes = onCpu && drafterDirs.length > 0 ? Math.max(0, ...weightBytes) : 0;
    // Caches on a GPU lie in its memory, of which the system knows nothing.
    const isTold = onCpu || kvCacheBytes === null;
    const cacheBytes = planCacheBytes(target, opened, kvCacheBytes, {
      availableBytes: isTold ? availableBytes - swapBytes : Number.POSITIVE_INFINITY,
      prefixCacheBytes,
    });
    const loadedBytes = weightBytes.reduce((sum, bytes) => sum + bytes, 0);
    const engine = new DecodeEngine({
      target,
      drafters,
      tokenizer,
      chatTemplate,
      prompts: new PromptEncoder(tokenizer, folder),
      grammars: new GrammarService({ tokenizer, ...target.facts }),
      model: options.servedModelName ?? basename(folder),
      samplingDefaults: config.samplingDefaults,
      maxWaiting: options.maxWaiting,
      limits,
      cacheBytes,
      drafterBytes: onCpu ? loadedBytes + availableBytes - cacheBytes - prefixCacheBytes : Number.POSITIVE_INFINITY,
      observers: options.observers,
      split,
      shadow: options.shadow ?? null,
      auditRate: options.auditRate ?? 0,
      tryDrafter: (served, signal) => tryDrafter(served, { runtime, ...target.facts }, signal),
      loadDrafter:
        drafterDirs.length === 0
          ? null
          : (replaced, path, freeBytes) =>
              loadReplacement(
                {
                  folders: drafterDirs,
                  taps,
                  source: (chosen, name) =>
                    drafterFromName(chosen, folder, { finalTaps: inPlaceOf(name, finalTaps), allowUnclaimed }),
                  context: { ...common, target: borrowTarget(loaded), loadDecoder },
                  lengths: (name) => {
                    const used = drafters.findIndex((one) => one.name === name);
                    return drafters[used]?.lengths === FIXED_LENGTH ? FIXED_LENGTH : new AutoLength(costs[used] as CostModel);
                  },
                },
                replaced,
                path,
                freeBytes,
              ),
    });
    return {
      engine,
      target,
      drafters,
      summary: {
        target: basename(folder),
        family: target.facts.family,
        weights: options.weights,
        drafters: drafters.map(({ name, drafter, draftTokens, lengths }) => ({
          name,
          kind: drafter.kind,
          taps: drafter.taps,
          draftTokens,
          length: lengths === FIXED_LENGTH ? 'fixed' : 'auto',
        })),
        device: options.device.kind === 'cuda' ? `cuda:${options.device.deviceId}` : 'cpu',
        threads: options.threads,
        runtimeVersion: runtime.version,
        maxContext: target.facts.maxContext,
        maxSequences: target.maxSequences,
        modelBytes: process.memoryUsage.rss(),
        cacheBytes,
        prefixCacheBytes: limits.prefixCacheBytes,
        prefixCacheNote: prefixCacheNote(target, drafters),
        availableBytes,
      },
      async warmUp() {
        await target.warmUp();
        for (const drafter of opened) await (drafter as WarmsUp).warmUp?.();
        const adaptive = drafters.flatMap(({ name, lengths }, i) =>
          lengths === FIXED_LENGTH ? [] : [[name, costs[i]!] as const],
        );
        const tasks = adaptive.flatMap(([name, own]) =>
          doublings(maxSequences).map((count) => engine.whenIdle(measureWhenIdle(target, name, count, own))),
        );
        await Promise.all(tasks);
      },
    };
  } catch (error) {
    // One that hangs may use the target's weights yet: both are left to the end of the process.
    for (const guard of guards) if (!guard.hangs) await guard[Symbol.asyncDispose]();
    if (guards.some((guard) => guard.hangs)) throw hangingError(error);
    await target[Symbol.asyncDispose]();
    throw error;
  }
}

/** @param error that says which drafter it is */
function hangingError(error: unknown): AppError {
  const reason = error instanceof Error ? error.message : String(error);
  return new AppError(
    'invalid_config',
    `Expected drafters whose costs can be measured, got one that hangs: ${reason}; start without it, or raise --drafter-timeout-ms`,
    { cause: error },
  );
}

/** What limits the reuse of beginnings, in words. */
function prefixCacheNote(target: Target, drafters: readonly ServedDrafter[]): string | null {
  const cannot = drafters.filter(({ drafter }) => drafter.taps.length > 0 && drafter.fork === undefined);
  const notes = [
    ...(target.recurrent === undefined ? [] : ['only where a sequence ended, as the target has recurrent layers']),
    ...cannot.map(({ name }) => `not with ${name}, which has no fork`),
  ];
  return notes.length === 0 ? null : notes.join('; ');
}

/** Splits `name=what` and gives the drafter that name. */
function named(find: (what: string, name: string | null) => Promise<DrafterSource> | DrafterSource | null) {
  return async (words: string): Promise<DrafterSource | null> => {
    const [, name, what = words] = /^([\w.-]+)=(.+)$/.exec(words) ?? [];
    const source = await find(what, name ?? null);
    return source === null || name === undefined ? source : { ...source, name };
  };
}

/** @throws AppError `invalid_config` */
function refuseEqualNames(sources: readonly DrafterSource[]): void {
  const names = ['none', ...sources.map(({ name }) => name)];
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return;
  throw new AppError('invalid_config', `Expected drafters of different names, got ${twice} twice; name them with name=folder`);
}

/** @throws AppError `invalid_config` when the drafter cannot make drafts that long */
function draftLength(wanted: number | 'auto', drafter: Drafter): number {
  const longest = drafter.maxDraftTokens;
  if (wanted === 'auto') return longest;
  if (wanted > longest) {
    throw new AppError(
      'invalid_config',
      `Expected at most ${longest} draft tokens from this ${drafter.kind} drafter, got ${wanted}`,
    );
  }
  return wanted;
}
