/** Training data of the very target that is served: its own answers, with what a drafter taps of every row. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { AbortedError } from '../../core/aborted-error.ts';
import { AppError } from '../../core/app-error.ts';
import type { Device } from '../../onnx/device.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import { readModelConfig } from '../../target/hf-config.ts';
import { type LoadTargetOptions, loadTarget } from '../../target/load-target.ts';
import type { Target } from '../../target/target.ts';
import { readChatTemplateSource } from '../../text/chat-template-source.ts';
import { loadTokenizer } from '../../text/tokenizer.ts';
import type { TemplateVariables } from '../measure/open-measured.ts';
import { loadTemplate } from '../recording/load-template.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';
import { promptSeed } from '../recording/prompt-seed.ts';
import { folderDigest } from '../report/provenance.ts';
import { Conversation, type Turns } from './conversation.ts';
import type { Manifest, Precision } from './manifest-schema.ts';
import { RecordedTurn } from './recorded-turn.ts';
import { type FinishedSequence, ShardWriter } from './shard-writer.ts';

export interface RecordOptions extends Pick<LoadTargetOptions, 'cacheDir' | 'maxContext' | 'allowUnclaimed'> {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  readonly target: string;
  readonly weights: LoadTargetOptions['format'];
  readonly prompts: readonly DiagnosisPrompt[];
  readonly turns: Turns;
  /** For the chat template; default: none. */
  readonly templateVariables?: TemplateVariables;
  /** Ids of layers, as drafters name them. */
  readonly taps: readonly number[];
  readonly lastHiddenState: boolean;
  readonly precision: Precision;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
  /** Decoded together. */
  readonly sequences: number;
  /** Rows of one step. */
  readonly maxRows: number;
  readonly shardRows: number;
  readonly out: string;
  readonly resume: boolean;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface RecordSummary {
  readonly manifest: Manifest;
  /** Of this run. */
  readonly sequences: number;
  readonly rows: number;
  readonly answerTokens: number;
  readonly totalMs: number;
  /** Time inside steps of the target. */
  readonly stepMs: number;
}

export const LAST_HIDDEN_STATE = 'last_hidden_state';

/**
 * When the signal aborts, finished conversations are saved, and the manifest says that the recording is not complete.
 * @throws AppError naming what cannot be loaded or used
 */
export async function record(options: RecordOptions): Promise<RecordSummary> {
  const { target: folder, taps, precision } = options;
  refuseTurnIds(options.prompts);
  const config = readModelConfig(folder);
  const [tokenizer, template] = await Promise.all([
    loadTokenizer(folder),
    loadTemplate(folder, options.templateVariables ?? {}),
  ]);
  const layers = config.spec.layers.length;
  // The last layer's output is a tap of its own behind the final norm.
  const tensors = new Map<number, string>(taps.map((tap) => [tap, tap === layers ? LAST_HIDDEN_STATE : `tap.${tap}`]));
  if (options.lastHiddenState) tensors.set(layers, LAST_HIDDEN_STATE);
  const { target } = await loadTarget({
    runtime: options.runtime,
    device: options.device,
    folder,
    config,
    format: options.weights,
    maxContext: options.maxContext,
    maxSequences: options.sequences,
    maxRows: options.maxRows,
    taps: [...tensors.keys()],
    cacheDir: options.cacheDir,
    allowUnclaimed: options.allowUnclaimed ?? false,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  try {
    const { facts } = target;
    const source = await readChatTemplateSource(folder);
    const writer = ShardWriter.open(
      options.out,
      [...tensors.values()],
      options.shardRows,
      {
        target: { folder: basename(folder), sha256: await folderDigest(folder), weights: options.weights },
        tokenizerSha256: tokenizer.sha256,
        chatTemplate: source.templates.get('default') ?? '',
        chatTemplateKwargs: options.templateVariables ?? {},
        turns: options.turns,
        eosTokenIds: [...facts.eosTokenIds],
        layers,
        hiddenSize: facts.hiddenSize,
        vocabSize: facts.vocabSize,
        taps: [...tensors.keys()].filter((tap) => tap !== layers),
        lastHiddenState: tensors.has(layers),
        precision,
        sampling: { temperature: options.temperature, seed: options.seed, maxTokens: options.maxTokens },
      },
      options.resume,
    );
    const render = (messages: NonNullable<ReturnType<Conversation['next']>>) =>
      tokenizer.encode(template.render(messages, { addGenerationPrompt: true, variables: options.templateVariables ?? {} }), {
        addSpecialTokens: false,
      });
    const decode = (tokens: readonly number[]) => tokenizer.decode(tokens, { skipSpecialTokens: true });
    return await recordAll({ options, target, tensors, writer, render, decode });
  } finally {
    await target[Symbol.asyncDispose]();
  }
}

interface Parts {
  readonly options: RecordOptions;
  readonly target: Target;
  readonly tensors: ReadonlyMap<number, string>;
  readonly writer: ShardWriter;
  readonly render: (messages: NonNullable<ReturnType<Conversation['next']>>) => readonly number[];
  readonly decode: (tokens: readonly number[]) => string;
}

interface Active {
  readonly conversation: Conversation;
  /** Digest of its messages. */
  readonly prompt: string;
  readonly finished: FinishedSequence[];
  turn: RecordedTurn;
}

async function recordAll({ options, target, tensors, writer, render, decode }: Parts): Promise<RecordSummary> {
  const { signal, prompts } = options;
  const waiting = missing(prompts, writer, options.out);
  const sums = { sequences: 0, rows: 0, answerTokens: 0, stepMs: 0 };
  let done = prompts.length - waiting.length;
  let active: Active[] = [];
  const started = performance.now();
  /** @returns null when no turn is left, or none that leaves room for an answer */
  const open = (conversation: Conversation): RecordedTurn | null => {
    const messages = conversation.next();
    if (messages === null) return null;
    const promptTokens = render(messages);
    if (promptTokens.length === 0 || promptTokens.length >= target.facts.maxContext) {
      writer.skip(conversation.turnId);
      return null;
    }
    const seed = promptSeed(options.seed, conversation.id);
    const sampling = { temperature: options.temperature, topP: 1, topK: 0, minP: 0, seed };
    return new RecordedTurn({
      target,
      tensors,
      precision: options.precision,
      promptTokens,
      sampling,
      maxTokens: options.maxTokens,
    });
  };
  const close = (entry: Active) => {
    writer.add(entry.finished);
    sums.sequences += entry.finished.length;
    options.onProgress?.(++done, prompts.length);
  };
  try {
    for (;;) {
      if (signal?.aborted) throw new AbortedError('Recording', signal.reason);
      while (active.length < target.maxSequences) {
        const next = waiting.shift();
        if (next === undefined) break;
        const conversation = new Conversation(next, options.turns);
        const turn = open(conversation);
        if (turn !== null) active.push({ conversation, prompt: promptDigest(next), finished: [], turn });
        else options.onProgress?.(++done, prompts.length);
      }
      if (active.length === 0) break;
      const planned = planRows(active, target.maxRows);
      const stepStarted = performance.now();
      const result = await target.step(
        planned.map(({ entry, rows }) => entry.turn.span(rows)),
        signal,
      );
      sums.stepMs += performance.now() - stepStarted;
      for (const [span, { entry, rows }] of planned.entries()) entry.turn.take(result, span, rows);
      const going: Active[] = [];
      for (const entry of active) {
        const { turn, conversation } = entry;
        if (!turn.done) {
          going.push(entry);
          continue;
        }
        turn.dispose();
        entry.finished.push({
          id: conversation.turnId,
          prompt: entry.prompt,
          tokens: turn.tokens,
          promptLength: turn.promptLength,
          chunks: turn.chunks,
        });
        sums.rows += turn.tokens.length;
        sums.answerTokens += turn.tokens.length - turn.promptLength;
        conversation.answer(decode(turn.answer));
        const following = open(conversation);
        if (following === null) close(entry);
        else going.push({ ...entry, turn: following });
      }
      active = going;
      await writer.settle();
    }
    await writer.finish(true);
  } catch (error) {
    if (!signal?.aborted) throw error;
    await writer.finish(false);
  } finally {
    for (const { turn } of active) turn.dispose();
  }
  return { manifest: writer.manifest, ...sums, totalMs: performance.now() - started };
}

/**
 * Prompts that are not recorded yet.
 * @throws AppError `invalid_config` when one of that id was, and is another one
 */
function missing(prompts: readonly DiagnosisPrompt[], writer: ShardWriter, out: string): DiagnosisPrompt[] {
  const recorded = new Map([...writer.recorded()].map(([id, prompt]) => [id.split('#')[0] as string, prompt]));
  return prompts.filter((prompt) => {
    const known = recorded.get(prompt.id);
    if (known !== undefined && known !== promptDigest(prompt)) {
      throw new AppError(
        'invalid_config',
        `Expected the prompts that the recording in ${out} was made from, got another one under the id ${prompt.id}; ` +
          'rename it, or choose another --out',
      );
    }
    return known === undefined;
  });
}

function promptDigest({ messages }: DiagnosisPrompt): string {
  return createHash('sha256').update(JSON.stringify(messages)).digest('hex');
}

/** Every sequence gets a row; the rest goes to prompts in order. */
function planRows(active: readonly Active[], maxRows: number): { readonly entry: Active; readonly rows: number }[] {
  let left = maxRows - active.length;
  return active.map((entry) => {
    const rows = Math.min(entry.turn.missing, left + 1);
    left -= rows - 1;
    return { entry, rows };
  });
}

/** Sequences of later turns are named behind a "#". */
function refuseTurnIds(prompts: readonly DiagnosisPrompt[]): void {
  const wrong = prompts.find(({ id }) => id.includes('#'));
  if (wrong === undefined) return;
  throw new AppError('invalid_config', `Expected prompts with ids without "#", got ${wrong.id}; rename it`);
}
