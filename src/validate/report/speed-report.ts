/** Measured speed next to what acceptance and costs predict. */
import type { CostModel } from '../../decode/draft-length/cost-model.ts';
import type { ServedAnswer } from '../measure/answer-records.ts';
import type { SpeedSample } from '../measure/speed-pass.ts';
import { median } from '../statistics/median.ts';
import { type ForcedRun, walk } from './forced-walk.ts';
import { Bootstrap } from './interval.ts';
import { ObservedCosts, type ObservedStep } from './observed-costs.ts';
import type { Speed } from './report-schema.ts';
import { countedAnswer, servedAcceptance } from './served-acceptance.ts';
import { groupBy } from './served-splits.ts';

export interface SpeedReportOptions {
  readonly samples: readonly SpeedSample[];
  /** Steps of the measurement that decoded. */
  readonly steps: readonly ObservedStep[];
  readonly repeats: number;
  /** At which all of it was drawn. */
  readonly temperature: number;
  /** Measured on this machine before. */
  readonly costs: CostModel;
  /** Answers of the passes, those to the timed prompts among them. */
  readonly served: readonly ServedAnswer[];
  readonly forced: readonly ForcedRun[];
  readonly maxDraftTokens: number;
  readonly seed: number;
}

/**
 * Speed-up of drafts of n tokens: AL(n) · c(1) / (d + c(1 + n)), with c(r) the time of a step of r rows and d that of a draft of n
 * (Leviathan, Kalman and Matias 2023, theorem 3.8, with measured costs in place of its c). Rounds in which the drafter had fewer
 * tokens, or none, cost what those do. The inverse without AL is the acceptance length at which drafting gains nothing.
 */
export function speedReport(options: SpeedReportOptions): Speed {
  const { samples, maxDraftTokens } = options;
  const costs = new ObservedCosts(options.costs, options.steps);
  const costOf = (drafted: number) => (drafted === 0 ? 0 : costs.draftMs(drafted)) + costs.stepMs(1 + drafted);
  const total = (value: (sample: (typeof samples)[number]) => number) =>
    samples.reduce((sum, sample) => sum + value(sample), 0);
  const tokens = total((sample) => sample.tokens);
  const bootstrap = new Bootstrap(samples.length, options.seed);
  const plainMs = costs.stepMs(1);
  const byDraftLength = Array.from({ length: maxDraftTokens }, (_, i) => {
    const draftTokens = i + 1;
    const rounds = options.forced.flatMap((run) =>
      walk(run, draftTokens).map(({ anchor, emitted }) => ({
        emitted,
        ms: costOf(Math.min(run.anchors[anchor]?.draft.length ?? 0, draftTokens)),
      })),
    );
    const mean = (value: (round: (typeof rounds)[number]) => number, none: number) =>
      rounds.length === 0 ? none : rounds.reduce((sum, round) => sum + value(round), 0) / rounds.length;
    const acceptanceLength = mean(({ emitted }) => emitted, 1);
    const roundMs = mean(({ ms }) => ms, costOf(draftTokens));
    const breakEven = roundMs / plainMs;
    return { draftTokens, acceptanceLength, roundMs, speedUp: acceptanceLength / breakEven, breakEven };
  });
  const best = byDraftLength.reduce((kept, next) => (next.speedUp > kept.speedUp ? next : kept), {
    draftTokens: 0,
    speedUp: 1,
  });
  return {
    prompts: samples.length,
    repeats: options.repeats,
    temperature: options.temperature,
    byCategory: timedByCategory(options),
    plainTokensPerSecond: (1000 * tokens) / total((sample) => sample.plainMs),
    tokensPerSecond: (1000 * tokens) / total((sample) => sample.speculativeMs),
    speedUp: bootstrap.ratio(samples.map(({ plainMs: dividend, speculativeMs: divisor }) => ({ dividend, divisor }))),
    stepMs: Array.from({ length: maxDraftTokens + 1 }, (_, i) => ({ rows: i + 1, ms: costs.stepMs(i + 1) })),
    draftMs: costs.draftMs(maxDraftTokens),
    byDraftLength,
    bestDraftTokens: best.draftTokens,
    predictedSpeedUp: best.speedUp,
  };
}

function timedByCategory({ samples, served, maxDraftTokens, seed }: SpeedReportOptions): Speed['byCategory'] {
  const sampleOf = new Map(samples.map((sample) => [sample.id, sample]));
  const timed = served.filter(({ id }) => sampleOf.has(id));
  return Object.fromEntries(
    [...groupBy(timed, ({ category }) => category)].map(([category, own]) => {
      const answers = own
        .flatMap(({ id }) => sampleOf.get(id)?.answers ?? [])
        .map(({ tokens, firstTokenMs, ms }) => ({ tokens: tokens.length, firstTokenMs, ms, latencyMs: firstTokenMs + ms }));
      const gaps = answers.flatMap(({ tokens, ms }) => (tokens > 1 ? [ms / (tokens - 1)] : []));
      return [
        category,
        {
          answers: answers.length,
          tokens: answers.reduce((sum, { tokens }) => sum + tokens, 0),
          medianLatencyMs: median(answers.map(({ latencyMs }) => latencyMs)),
          medianFirstTokenMs: median(answers.map(({ firstTokenMs }) => firstTokenMs)),
          medianInterTokenMs: gaps.length === 0 ? null : median(gaps),
          medianTokensPerSecond: median(answers.map(({ tokens, latencyMs }) => (1000 * tokens) / latencyMs)),
          acceptance: servedAcceptance(
            own.map((answer) => countedAnswer(answer)),
            maxDraftTokens,
            seed,
          ),
        },
      ];
    }),
  );
}
