/** The whole validation of a drafter: decode with it, ask it by teacher forcing, time it, and report. */
import { join } from 'node:path';
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import type { SamplingParams } from '../core/sampling-params.ts';
import { AutoLength } from '../decode/draft-length/auto-length.ts';
import { FIXED_LENGTH } from '../decode/draft-length/fixed-length.ts';
import type { StepReport } from '../engine/engine.ts';
import { measureCosts } from '../engine/measure-costs.ts';
import { AnswerStore } from './measure/answer-store.ts';
import type { DecodeJob } from './measure/decode-jobs.ts';
import { forcedPass } from './measure/forced-pass.ts';
import { Measured, type OpenedDrafter, type OpenMeasuredOptions } from './measure/open-measured.ts';
import { servedPass } from './measure/served-pass.ts';
import { type SpeedSample, speedPass } from './measure/speed-pass.ts';
import type { EncodedPrompt } from './recording/encoded-prompts.ts';
import type { DiagnosisPrompt } from './recording/prompt.ts';
import { promptSeed } from './recording/prompt-seed.ts';
import { takeEvenly } from './recording/read-prompts.ts';
import { buildReport } from './report/build-report.ts';
import { forcedRun } from './report/forced-walk.ts';
import type { Thresholds } from './report/gates.ts';
import { provenance } from './report/provenance.ts';
import type { Report, Settings } from './report/report-schema.ts';
import { speedReport } from './report/speed-report.ts';

export type ValidationStage = 'decoding' | 'timing';

export interface ValidateOptions extends Omit<OpenMeasuredOptions, 'drafters'> {
  readonly drafter: string;
  readonly prompts: readonly DiagnosisPrompt[];
  /** Where they come from. */
  readonly promptsFile: string;
  readonly maxTokens: number;
  /** The first one is reported in detail. */
  readonly temperatures: readonly number[];
  readonly seed: number;
  /** Null: as long as the drafter makes them; `auto`: as long as they pay. */
  readonly draftTokens: number | 'auto' | null;
  /** Prompts that are timed; 0: none. */
  readonly speedPrompts: number;
  readonly speedRepeats: number;
  /** Folder for the answers; null: they are not kept. */
  readonly out: string | null;
  /** Go on with the answers in that folder. */
  readonly resume: boolean;
  readonly thresholds: Thresholds;
  readonly onStage?: (stage: ValidationStage, done: number, total: number) => void;
}

export interface Validation {
  readonly report: Report;
  readonly store: AnswerStore;
}

/** Prompts between two savings, in multiples of those decoded together: enough that the last ones of each hardly cost. */
const CHUNK = 4;

/**
 * When the signal aborts after loading, the report is of what was done by then, and says so.
 * @throws AppError naming what cannot be loaded or used; `aborted` when nothing was done
 */
export async function validate(options: ValidateOptions): Promise<Validation> {
  const steps: StepReport[] = [];
  await using measured = await Measured.open({
    ...options,
    drafters: [options.drafter],
    observers: [
      {
        onStart: () => undefined,
        onStep: (step) => step.rounds.length > 0 && steps.push(step),
        onFinish: () => undefined,
      },
    ],
  });
  const [drafter] = measured.drafters as readonly [OpenedDrafter];
  const longest = drafter.drafter.maxDraftTokens;
  const { draftTokens } = measured;
  const maxDraftTokens = typeof draftTokens === 'number' ? draftTokens : longest;
  const settings: Settings = {
    weights: options.weights,
    device: measured.opened.summary.device,
    threads: options.threads,
    concurrency: options.concurrency,
    maxTokens: options.maxTokens,
    temperatures: [...options.temperatures],
    chatTemplateKwargs: measured.templateVariables,
    seed: options.seed,
    draftTokens,
    maxDraftTokens,
  };
  const fitting = measured.encode(options.prompts);
  const { prompts } = fitting;
  const origin = await provenance({
    onnxRuntime: measured.opened.summary.runtimeVersion,
    target: options.target,
    drafters: measured.drafters,
    promptsFile: options.promptsFile,
    prompts: fitting,
  });
  // An answer does not depend on the others, so which prompts and temperatures there are may differ.
  const { temperatures: _, concurrency: __, ...ofAnswers } = settings;
  const conditions = {
    target: origin.target.sha256,
    drafter: origin.drafters[0]?.sha256 ?? drafter.name,
    prompts: origin.prompts.sha256,
    maxContext: measured.opened.target.facts.maxContext,
    taps: drafter.drafter.taps,
    ...ofAnswers,
  };
  const store = AnswerStore.open(options.out === null ? null : join(options.out, 'answers.jsonl'), conditions, options.resume);
  const [costs] = await measureCosts(measured.opened.target, [drafter.drafter]);
  if (costs === undefined) throw new AppError('internal', 'Expected the costs of one drafter, got none');
  const lengths = draftTokens === 'auto' ? new AutoLength(costs) : FIXED_LENGTH;

  const [first = 0] = options.temperatures;
  let complete = true;
  const samples: SpeedSample[] = [];
  try {
    await decodeAll({ options, prompts, measured, drafter, maxDraftTokens, lengths, store });
    if (options.speedPrompts > 0) {
      await speedPass({
        engine: measured.opened.engine,
        prompts: takeEvenly(prompts, options.speedPrompts).map((prompt) => toJob(prompt, options, first)),
        maxTokens: options.maxTokens,
        repeats: options.speedRepeats,
        onSample: (sample) => samples.push(sample),
        onProgress: (done, total) => options.onStage?.('timing', done, total),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
    }
  } catch (error) {
    if (!options.signal?.aborted) throw error;
    complete = false;
  }
  const passes = options.temperatures.map((temperature) => ({
    served: answersTo(prompts, store.served(temperature)),
    forced: answersTo(prompts, store.forced(temperature)),
  }));
  if (passes[0]?.served.length === 0) throw new AbortedError('The validation');
  const report = buildReport({
    provenance: origin,
    settings,
    complete,
    drafter: drafter.name,
    passes,
    speed:
      samples.length === 0
        ? null
        : speedReport({
            samples,
            steps,
            repeats: options.speedRepeats,
            temperature: first,
            costs,
            served: passes[0]?.served ?? [],
            forced: (passes[0]?.forced ?? []).map((answer) => forcedRun(answer, drafter.name)),
            maxDraftTokens,
            seed: options.seed,
          }),
    differing: samples.flatMap(({ id, differsAt }) =>
      differsAt === null ? [] : [{ id, temperature: first, position: differsAt }],
    ),
    compared: samples.length,
    thresholds: options.thresholds,
  });
  return { report, store };
}

/** In the order of the prompts; a store may have answers to others, too. */
function answersTo<Answer extends { readonly id: string }>(
  prompts: readonly DiagnosisPrompt[],
  answers: readonly Answer[],
): readonly Answer[] {
  const byId = new Map(answers.map((answer) => [answer.id, answer]));
  return prompts.flatMap(({ id }) => byId.get(id) ?? []);
}

interface DecodeAllOptions {
  readonly options: ValidateOptions;
  readonly prompts: readonly EncodedPrompt[];
  readonly measured: Measured;
  readonly drafter: OpenedDrafter;
  readonly maxDraftTokens: number;
  readonly lengths: typeof FIXED_LENGTH;
  readonly store: AnswerStore;
}

/** Both passes, some prompts at a time: what an interrupt leaves is of use. */
async function decodeAll({
  options,
  measured,
  drafter,
  maxDraftTokens,
  lengths,
  store,
  ...parts
}: DecodeAllOptions): Promise<void> {
  const { temperatures, concurrency, signal } = options;
  const prompts = takeEvenly(parts.prompts, parts.prompts.length);
  const total = prompts.length * temperatures.length * 2;
  let done = 0;
  const progress = () => options.onStage?.('decoding', ++done, total);
  for (let start = 0; start < prompts.length; start += CHUNK * concurrency) {
    const chunk = prompts.slice(start, start + CHUNK * concurrency);
    for (const temperature of temperatures) {
      const jobs = chunk.map((prompt) => toJob(prompt, options, temperature));
      const missing = (pass: 'served' | 'forced') => {
        const left = jobs.filter(({ id }) => !store.has(pass, id, temperature));
        for (let i = left.length; i < jobs.length; i++) progress();
        return left;
      };
      const common = {
        target: measured.opened.target,
        drafters: [drafter],
        draftTokens: maxDraftTokens,
        concurrency,
        ...(signal === undefined ? {} : { signal }),
        onAnswer(answer: Parameters<AnswerStore['add']>[0]) {
          store.add(answer);
          progress();
        },
      };
      await servedPass({ ...common, jobs: missing('served'), lengths });
      await forcedPass({ ...common, jobs: missing('forced') });
    }
  }
}

function toJob({ id, category, promptTokens }: EncodedPrompt, options: ValidateOptions, temperature: number): DecodeJob {
  const sampling: SamplingParams = { temperature, topP: 1, topK: 0, minP: 0, seed: promptSeed(options.seed, id) };
  return { id, category, promptTokens, sampling, maxTokens: options.maxTokens };
}
