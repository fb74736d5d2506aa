/** Several drafters of one target, asked behind every token of the same answers. */
import { AbortedError } from '../../core/aborted-error.ts';
import { AppError } from '../../core/app-error.ts';
import type { ForcedAnswer } from '../measure/answer-records.ts';
import { forcedPass } from '../measure/forced-pass.ts';
import { Measured, type OpenMeasuredOptions } from '../measure/open-measured.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';
import { promptSeed } from '../recording/prompt-seed.ts';
import { forcedAccuracy } from '../report/forced-accuracy.ts';
import { forcedRun } from '../report/forced-walk.ts';
import { Bootstrap } from '../report/interval.ts';
import { provenance } from '../report/provenance.ts';
import { groupBy } from '../report/served-splits.ts';
import { holmAdjusted } from '../statistics/holm.ts';
import { type Comparison, comparisonSchema, type Member } from './comparison-schema.ts';
import { pairedDifference, walkedRatio } from './paired-difference.ts';
import { verdictOf, verdictWords } from './verdict-words.ts';

export interface CompareOptions extends Omit<OpenMeasuredOptions, 'draftTokens' | 'observers'> {
  readonly prompts: readonly DiagnosisPrompt[];
  readonly promptsFile: string;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
  /** The longest draft that counts; null: as long as each drafter makes them. */
  readonly draftTokens: number | null;
  /** Tokens per round that are too few to matter. */
  readonly margin: number;
  readonly onAnswer?: (done: number, total: number) => void;
}

/**
 * When the signal aborts after loading, the comparison is of the answers that were complete by then.
 * @throws AppError naming what cannot be loaded or used; `aborted` when no answer was complete
 */
export async function compare(options: CompareOptions): Promise<Comparison> {
  const { temperature, seed, signal } = options;
  if (options.drafters.length < 2) {
    throw new AppError(
      'invalid_config',
      `Expected at least 2 drafters to compare, got ${options.drafters.length}; name another one`,
    );
  }
  await using measured = await Measured.open({ ...options, draftTokens: 1 });
  const fitting = measured.encode(options.prompts);
  const { prompts } = fitting;
  const answers: ForcedAnswer[] = [];
  let complete = true;
  try {
    await forcedPass({
      target: measured.opened.target,
      drafters: measured.drafters,
      draftTokens: options.draftTokens ?? measured.maxDraftTokens,
      concurrency: options.concurrency,
      jobs: prompts.map(({ id, category, promptTokens }) => ({
        ...{ id, category, promptTokens },
        sampling: { temperature, topP: 1, topK: 0, minP: 0, seed: promptSeed(seed, id) },
        maxTokens: options.maxTokens,
      })),
      onAnswer(answer) {
        answers.push(answer);
        options.onAnswer?.(answers.length, prompts.length);
      },
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (!signal?.aborted) throw error;
    complete = false;
  }
  if (answers.length === 0) throw new AbortedError('The comparison');
  const order = new Map(prompts.map(({ id }, place) => [id, place]));
  answers.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0));
  const { weights, threads, maxTokens, draftTokens, margin } = options;
  const lengths = measured.drafters.map(({ name, drafter }) => ({
    name,
    maxDraftTokens: Math.min(drafter.maxDraftTokens, draftTokens ?? drafter.maxDraftTokens),
  }));
  return comparisonSchema.parse({
    format: 'blockdraft-comparison',
    formatVersion: 1,
    provenance: await provenance({
      onnxRuntime: measured.opened.summary.runtimeVersion,
      target: options.target,
      drafters: measured.drafters,
      promptsFile: options.promptsFile,
      prompts: fitting,
    }),
    settings: {
      ...{ weights, device: measured.opened.summary.device, threads, maxTokens, temperature, seed, draftTokens, margin },
      chatTemplateKwargs: measured.templateVariables,
    },
    complete,
    prompts: answers.length,
    members: lengths.map((member) => memberOf(answers, member, seed)),
    pairs: comparePairs(answers, lengths, seed, margin),
  } satisfies Comparison);
}

type Length = Pick<Member, 'name' | 'maxDraftTokens'>;

function memberOf(answers: readonly ForcedAnswer[], { name, maxDraftTokens }: Length, seed: number): Member {
  const acceptanceLength = (own: readonly ForcedAnswer[]) =>
    new Bootstrap(own.length, seed).ratio(own.map((answer) => walkedRatio(forcedRun(answer, name), maxDraftTokens)));
  return {
    name,
    maxDraftTokens,
    acceptanceLength: acceptanceLength(answers),
    acceptanceByCategory: Object.fromEntries(
      [...groupBy(answers, ({ category }) => category)].map(([category, own]) => [category, acceptanceLength(own)]),
    ),
    forced: forcedAccuracy(
      answers.map((answer) => forcedRun(answer, name)),
      maxDraftTokens,
      seed,
    ),
  };
}

/** Each later member against the first. */
export function comparePairs(
  answers: readonly ForcedAnswer[],
  members: readonly Length[],
  seed: number,
  margin: number,
): Comparison['pairs'] {
  const [first, ...others] = members;
  if (first === undefined) return [];
  const differences = others.map((other) => ({
    b: other.name,
    difference: pairedDifference(
      answers.map((answer) => ({
        category: answer.category,
        a: forcedRun(answer, first.name),
        b: forcedRun(answer, other.name),
      })),
      { draftTokens: Math.max(first.maxDraftTokens, other.maxDraftTokens), seed },
    ),
  }));
  const adjusted = holmAdjusted(differences.map(({ difference }) => difference.p));
  return differences.map(({ b, difference }, i) => {
    const p = adjusted[i] as number;
    const options = { a: first.name, b, prompts: answers.length, p, margin };
    return {
      ...difference,
      a: first.name,
      b,
      p,
      verdict: verdictOf(difference, p, margin),
      words: verdictWords(difference, options),
    };
  });
}
