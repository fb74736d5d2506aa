/** Loads a target, its drafter and its tokenizer, and puts an engine on top. */
import { basename, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import type { BorrowedTarget } from '../drafter/borrowed-target.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { DrafterSource } from '../drafter/drafter-context.ts';
import { drafterFromModule, drafterFromName } from '../drafter/registry.ts';
import type { Device } from '../onnx/device.ts';
import { openRuntime } from '../onnx/runtime.ts';
import { readModelConfig } from '../target/hf-config.ts';
import { type LoadedTarget, loadTarget } from '../target/load-target.ts';
import type { Target } from '../target/target.ts';
import { loadChatTemplate } from '../text/chat-template.ts';
import { loadTokenizer } from '../text/tokenizer.ts';
import { DecodeEngine } from './decode-engine.ts';
import type { EngineObserver } from './engine.ts';

export interface OpenEngineOptions {
  /** Folder of the target. */
  readonly target: string;
  /** A built-in drafter's name, or a drafter's folder. */
  readonly drafter: string;
  /** A user's own drafter module, in place of {@link drafter}; null: none. */
  readonly drafterModule: string | null;
  /** Length of each draft; null: as long as the drafter can. */
  readonly draftTokens: number | null;
  readonly weights: 'f32' | 'int8' | 'int4';
  readonly device: Device;
  readonly threads: number;
  /** Null: as long as the model was made for. */
  readonly maxContext: number | null;
  readonly maxSequences: number;
  /** Rows of one step. */
  readonly maxRows: number;
  readonly maxWaiting: number;
  /** Name under which the model is served; null: the folder's. */
  readonly servedModelName: string | null;
  /** Null: the user's cache folder. */
  readonly cacheDir: string | null;
  readonly observers: readonly EngineObserver[];
  /** @param what is being prepared */
  readonly onProgress?: (what: string, doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

/** The engine, and facts about it that a person wants to see. */
export interface OpenedEngine {
  readonly engine: DecodeEngine;
  /** The engine's own, for measurements beside it; use them only while it is idle. */
  readonly target: Target;
  readonly drafter: Drafter | null;
  readonly summary: EngineSummary;
  /** Loads what several sequences at once need; until then the first such step waits. */
  warmUp(): Promise<void>;
}

export interface EngineSummary {
  readonly target: string;
  readonly family: string;
  readonly weights: string;
  readonly drafter: string;
  readonly drafterKind: string;
  readonly taps: readonly number[];
  /** Slots of a block, the anchor's included; 0 without a drafter. */
  readonly blockSize: number;
  readonly draftTokens: number;
  readonly device: string;
  readonly threads: number;
  readonly runtimeVersion: string;
  readonly maxContext: number;
  readonly maxSequences: number;
  /** Bytes that the caches of all sequences take when they are full. */
  readonly cacheBytes: number;
}

/** Drafters and targets load what several sequences need in the background. */
interface WarmsUp {
  warmUp?(): Promise<void>;
}

/** @throws AppError naming what cannot be loaded and why */
export async function openEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  if (options.maxRows < options.maxSequences) {
    throw new AppError(
      'invalid_config',
      `Expected at least ${options.maxSequences} rows per step, one for each sequence, got ${options.maxRows}`,
    );
  }
  const folder = resolve(options.target);
  const config = readModelConfig(folder);
  const source =
    options.drafterModule === null ? drafterFromName(options.drafter, folder) : await drafterFromModule(options.drafterModule);
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
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
  const loaded = await loadTarget({
    ...common,
    ...progress('target'),
    folder,
    config,
    maxContext: options.maxContext,
    maxSequences: options.maxSequences,
    maxRows: options.maxRows,
    taps: source?.taps ?? [],
  });
  const { target } = loaded;
  let drafter: Drafter | null = null;
  try {
    drafter = source === null ? null : await source.load({ ...common, ...progress('drafter'), target: borrow(loaded) });
    const draftTokens = draftLength(options.draftTokens, drafter);
    const engine = new DecodeEngine({
      target,
      drafter: drafter === null ? null : { name: (source as DrafterSource).name, drafter, draftTokens },
      tokenizer,
      chatTemplate,
      model: options.servedModelName ?? basename(folder),
      samplingDefaults: config.samplingDefaults,
      maxWaiting: options.maxWaiting,
      observers: options.observers,
    });
    return {
      engine,
      target,
      drafter,
      summary: {
        target: basename(folder),
        family: target.facts.family,
        weights: options.weights,
        drafter: source?.name ?? 'none',
        drafterKind: drafter?.kind ?? 'none',
        taps: source?.taps ?? [],
        blockSize: drafter === null ? 0 : drafter.maxDraftTokens + 1,
        draftTokens,
        device: options.device.kind === 'cuda' ? `cuda:${options.device.deviceId}` : 'cpu',
        threads: options.threads,
        runtimeVersion: runtime.version,
        maxContext: target.facts.maxContext,
        maxSequences: target.maxSequences,
        cacheBytes: target.cacheBytesPerPosition * target.facts.maxContext * target.maxSequences,
      },
      async warmUp() {
        await target.warmUp();
        await (drafter as WarmsUp | null)?.warmUp?.();
      },
    };
  } catch (error) {
    await drafter?.[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
    throw error;
  }
}

/** @throws AppError `invalid_config` when the drafter cannot make drafts that long */
function draftLength(wanted: number | null, drafter: Drafter | null): number {
  const longest = drafter?.maxDraftTokens ?? 0;
  if (wanted === null || drafter === null) return longest;
  if (wanted > longest) {
    throw new AppError(
      'invalid_config',
      `Expected at most ${longest} draft tokens from this ${drafter.kind} drafter, got ${wanted}`,
    );
  }
  return wanted;
}

function borrow({ target, checkpoint, embedding, head }: LoadedTarget): BorrowedTarget {
  return {
    ...target.facts,
    maxSequences: target.maxSequences,
    checkpoint,
    embedding,
    head,
    weight: (name) => target.weights.get(name),
    prepacked: target.prepacked,
  };
}
