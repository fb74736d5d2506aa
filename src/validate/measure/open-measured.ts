/** A target and drafters, opened as the server opens them, for measurements. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError } from '../../core/app-error.ts';
import { declaredFormat } from '../../drafter/dflash/declared-format.ts';
import { longestDraft, readDflashConfig } from '../../drafter/dflash/dflash-config.ts';
import { NGRAM_DEFAULTS } from '../../drafter/ngram/ngram-drafter.ts';
import type { EngineObserver } from '../../engine/engine.ts';
import { type OpenEngineOptions, type OpenedEngine, openEngine } from '../../engine/open-engine.ts';
import { readModelConfig } from '../../target/hf-config.ts';
import type { ChatTemplate, RenderOptions } from '../../text/chat-template.ts';
import { loadTokenizer, type Tokenizer } from '../../text/tokenizer.ts';
import { type FittingPrompts, fittingPrompts } from '../recording/encoded-prompts.ts';
import { loadTemplate } from '../recording/load-template.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';
import { ANY_CONFIG, type MeasuredDrafter, measuredDrafter } from './measured-drafter.ts';

export type TemplateVariables = NonNullable<RenderOptions['variables']>;

export interface OpenMeasuredOptions
  extends Pick<
    OpenEngineOptions,
    'target' | 'weights' | 'device' | 'threads' | 'maxContext' | 'cacheDir' | 'finalTap' | 'allowUnclaimed'
  > {
  /** As for the server: a built-in name or a folder each, perhaps with `name=` before it; at least one. */
  readonly drafters: readonly string[];
  /** For the chat template; default: none. */
  readonly templateVariables?: TemplateVariables;
  /** Requests decoded together. */
  readonly concurrency: number;
  /** Of the engine's first drafter; null: as long as it makes them, or `auto` where that is not known before loading. */
  readonly draftTokens: number | 'auto' | null;
  /** Of the engine. */
  readonly observers?: readonly EngineObserver[];
  readonly onProgress?: OpenEngineOptions['onProgress'];
  readonly signal?: AbortSignal;
}

export interface OpenedDrafter extends MeasuredDrafter {
  /** Null for drafters without files. */
  readonly folder: string | null;
}

export class Measured implements AsyncDisposable {
  readonly opened: OpenedEngine;
  readonly drafters: readonly OpenedDrafter[];
  /** Of the engine's first drafter. */
  readonly draftTokens: number | 'auto';
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  readonly templateVariables: TemplateVariables;

  private constructor(
    parts: Pick<Measured, 'opened' | 'drafters' | 'draftTokens' | 'tokenizer' | 'template' | 'templateVariables'>,
  ) {
    this.opened = parts.opened;
    this.drafters = parts.drafters;
    this.draftTokens = parts.draftTokens;
    this.tokenizer = parts.tokenizer;
    this.template = parts.template;
    this.templateVariables = parts.templateVariables;
  }

  /** @throws AppError naming what cannot be loaded and why */
  static async open(options: OpenMeasuredOptions): Promise<Measured> {
    const { onProgress, signal, concurrency, templateVariables = {} } = options;
    if (options.drafters.some((words) => whatOf(words) === 'none')) {
      throw new AppError('invalid_config', 'Expected drafters to measure, got none, which drafts nothing; leave it out');
    }
    // What is no model is told as that, not as one without a tokenizer.
    readModelConfig(options.target);
    const [tokenizer, template] = await Promise.all([
      loadTokenizer(options.target),
      loadTemplate(options.target, templateVariables),
    ]);
    const { target, drafters: chosen, weights, device, threads, maxContext, cacheDir } = options;
    const draftTokens = options.draftTokens ?? draftTokensOf(chosen[0] ?? '', target);
    const opened = await openEngine({
      ...{ target, drafters: chosen, weights, device, threads, maxContext, cacheDir },
      drafterModules: [],
      finalTap: options.finalTap ?? [],
      allowUnclaimed: options.allowUnclaimed ?? false,
      draftTokens,
      maxSequences: concurrency,
      maxRows: Math.max(256, concurrency * 16),
      maxWaiting: concurrency,
      servedModelName: null,
      observers: options.observers ?? [],
      ...(onProgress === undefined ? {} : { onProgress }),
      ...(signal === undefined ? {} : { signal }),
    });
    try {
      const drafters = await Promise.all(
        opened.drafters.map(
          async ({ name, drafter, folder = null }): Promise<OpenedDrafter> => ({
            ...(await measuredDrafter(name, drafter, folder)),
            folder,
          }),
        ),
      );
      return new Measured({ opened, drafters, tokenizer, template, draftTokens, templateVariables });
    } catch (error) {
      await opened.engine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The longest draft that any of the drafters makes. */
  get maxDraftTokens(): number {
    return Math.max(...this.drafters.map(({ drafter }) => drafter.maxDraftTokens));
  }

  /** @throws AppError `invalid_config` when fewer than two of them fit into the context */
  encode(prompts: readonly DiagnosisPrompt[]): FittingPrompts {
    const encoded = prompts.map((prompt) => {
      const text = this.template.render(prompt.messages, {
        addGenerationPrompt: true,
        variables: this.templateVariables,
      });
      return { ...prompt, promptTokens: this.tokenizer.encode(text, { addSpecialTokens: false }) };
    });
    return fittingPrompts(encoded, this.opened.target.facts.maxContext);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.opened.engine[Symbol.asyncDispose]();
  }
}

/** A drafter without the name before it. */
function whatOf(words: string): string {
  return /^[\w.-]+=(.+)$/.exec(words)?.[1] ?? words;
}

/** The folder that the words for a drafter mean; null for a drafter without one. */
function drafterFolder(words: string, target: string): string | null {
  const what = whatOf(words);
  if (what === 'dflash') return `${resolve(target)}-dflash`;
  return existsSync(what) ? resolve(what) : null;
}

/** Whole drafts, where their length is known before loading. */
function draftTokensOf(words: string, target: string): number | 'auto' {
  const folder = drafterFolder(words, target);
  if (folder === null) return whatOf(words) === 'ngram' ? NGRAM_DEFAULTS.maxDraftTokens : 'auto';
  return declaredFormat(folder).layout === null ? 'auto' : longestDraft(readDflashConfig(folder, ANY_CONFIG));
}
