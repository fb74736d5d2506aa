/** A target with its answers to some prompts and the residual streams behind them: what every diagnosis of a drafter begins with. */
import { AppError } from '../core/app-error.ts';
import type { BorrowedTarget } from '../drafter/borrowed-target.ts';
import { borrowTarget } from '../engine/borrow-target.ts';
import { CPU } from '../onnx/device.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { finalNormWeight } from '../target/decoder-spec.ts';
import { normFactors } from '../target/derived-weights.ts';
import { type ModelConfig, readModelConfig } from '../target/hf-config.ts';
import { loadTarget } from '../target/load-target.ts';
import type { Target } from '../target/target.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import { loadTokenizer, type Tokenizer } from '../text/tokenizer.ts';
import { type PromptForm, promptForms, recordForm } from './evidence/prompt-forms.ts';
import type { TemplateVariables } from './measure/open-measured.ts';
import { FeatureSource } from './probe/feature-source.ts';
import { TargetHead } from './probe/target-head.ts';
import { type FittingPrompts, fittingPrompts } from './recording/encoded-prompts.ts';
import { loadTemplate } from './recording/load-template.ts';
import type { DiagnosisPrompt } from './recording/prompt.ts';
import { recordAnswers } from './recording/record-answers.ts';
import type { RecordedSequence } from './recording/recorded-sequence.ts';

export interface RecordedTargetOptions {
  readonly runtime: OnnxRuntime;
  /** Folder. */
  readonly target: string;
  readonly prompts: readonly DiagnosisPrompt[];
  readonly weights: 'f32' | 'int8';
  /** Longest answer recorded. */
  readonly maxTokens: number;
  /** For the chat template; default: none. */
  readonly templateVariables?: TemplateVariables;
  /** Accept tensors and settings that nothing here knows; default: no. */
  readonly allowUnclaimed?: boolean;
  /** Null: the user's cache folder. */
  readonly cacheDir: string | null;
  readonly signal?: AbortSignal;
}

export interface RecordedForm extends PromptForm {
  /** The answers as served, behind their prompts in this form. */
  readonly sequences: readonly RecordedSequence[];
}

/** Sequences decoded together while recording. */
const SEQUENCES_AT_ONCE = 8;
const ROWS_AT_ONCE = 256;

export class RecordedTarget implements AsyncDisposable {
  readonly options: RecordedTargetOptions;
  readonly config: ModelConfig;
  readonly borrowed: BorrowedTarget;
  readonly head: TargetHead;
  readonly features: FeatureSource;
  readonly tokenizer: Tokenizer;
  readonly prompts: FittingPrompts;
  readonly #target: Target;
  readonly #template: ChatTemplate;
  #answers: readonly RecordedSequence[] | null = null;
  #forms: readonly RecordedForm[] | null = null;

  private constructor(
    parts: Pick<RecordedTarget, 'options' | 'config' | 'borrowed' | 'head' | 'tokenizer' | 'prompts'>,
    target: Target,
    template: ChatTemplate,
  ) {
    this.options = parts.options;
    this.config = parts.config;
    this.borrowed = parts.borrowed;
    this.head = parts.head;
    this.features = new FeatureSource(parts.head, parts.config.spec.hidden);
    this.tokenizer = parts.tokenizer;
    this.prompts = parts.prompts;
    this.#target = target;
    this.#template = template;
  }

  /**
   * Loads the target; answers are recorded when they are first asked for.
   * @throws AppError naming what cannot be loaded, or `aborted`
   */
  static async open(options: RecordedTargetOptions): Promise<RecordedTarget> {
    const { runtime, target: folder, signal, templateVariables: variables = {}, allowUnclaimed = false } = options;
    const config = readModelConfig(folder);
    const { spec } = config;
    const [tokenizer, template] = await Promise.all([loadTokenizer(folder), loadTemplate(folder, variables)]);
    const encoded = options.prompts.map((prompt) => {
      const text = template.render(prompt.messages, { addGenerationPrompt: true, variables });
      return { ...prompt, promptTokens: tokenizer.encode(text, { addSpecialTokens: false }) };
    });
    const longest = Math.max(...encoded.map(({ promptTokens }) => promptTokens.length));
    const maxContext = Math.min(longest + options.maxTokens, spec.maxPositions);
    // Behind a drafted token there has to be one that it is compared with.
    const prompts = fittingPrompts(encoded, maxContext - 1);
    const loaded = await loadTarget({
      runtime,
      device: CPU,
      folder,
      config,
      format: options.weights,
      maxContext,
      maxSequences: SEQUENCES_AT_ONCE,
      maxRows: ROWS_AT_ONCE,
      taps: Array.from({ length: spec.layers.length }, (_, layer) => layer),
      cacheDir: options.cacheDir,
      allowUnclaimed,
      ...(signal === undefined ? {} : { signal }),
    });
    try {
      const borrowed = borrowTarget(loaded);
      const norm = { weight: normFactors(spec, finalNormWeight(spec)), epsilon: spec.normEpsilon };
      const head = await TargetHead.open(runtime, borrowed, norm);
      return new RecordedTarget({ options, config, borrowed, head, tokenizer, prompts }, loaded.target, template);
    } catch (error) {
      await loaded.target[Symbol.asyncDispose]();
      throw error;
    }
  }

  get facts(): Target['facts'] {
    return this.#target.facts;
  }

  /**
   * Answers of two tokens and more, in the order of the prompts; recorded once.
   * @throws AppError `aborted`, or what the target reports
   */
  async answers(
    onProgress?: (done: number, total: number) => void,
    signal?: AbortSignal,
  ): Promise<readonly RecordedSequence[]> {
    if (this.#answers === null) {
      const recorded = await recordAnswers({
        target: this.#target,
        maxTokens: this.options.maxTokens,
        sequences: this.prompts.prompts.map((prompt) => ({ ...prompt, answer: null })),
        ...(onProgress === undefined ? {} : { onProgress }),
        ...(signal === undefined ? {} : { signal }),
      });
      const long = recorded.filter(({ tokens, answerStart }) => tokens.length - answerStart >= 2);
      if (long.length < 2) {
        throw new AppError(
          'invalid_config',
          `Expected answers of at least 2 tokens to at least 2 prompts, got ${long.length} of ${recorded.length}; raise --max-tokens, or ask otherwise`,
        );
      }
      this.#answers = long;
    }
    return this.#answers;
  }

  /**
   * The same answers behind prompts that are written otherwise; forms in which they do not fit the context are left out.
   * @throws AppError `aborted`, or what the target reports
   */
  async forms(signal?: AbortSignal): Promise<readonly RecordedForm[]> {
    if (this.#forms === null) {
      const sequences = await this.answers(undefined, signal);
      const promptOf = new Map(this.prompts.prompts.map((prompt) => [prompt.id, prompt]));
      const prompts = sequences.map(({ id }) => promptOf.get(id) as DiagnosisPrompt);
      const common = { target: this.#target, tokenizer: this.tokenizer, prompts, sequences };
      const forms: RecordedForm[] = [];
      for (const form of promptForms(this.#template, prompts[0]?.messages ?? [], this.options.templateVariables)) {
        const rewritten = await recordForm(form, { ...common, ...(signal === undefined ? {} : { signal }) });
        if (rewritten !== null) forms.push({ ...form, sequences: rewritten });
      }
      this.#forms = forms;
    }
    return this.#forms;
  }

  /** No run may be in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.head[Symbol.dispose]();
    await this.#target[Symbol.asyncDispose]();
  }
}
