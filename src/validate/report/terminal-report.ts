/** A report as tables on a terminal. */
import { formatInterval, formatNumber, formatShare } from './format-figure.ts';
import type { Interval } from './interval.ts';
import { leftOut } from './left-out.ts';
import type { Acceptance, Report } from './report-schema.ts';
import { textTable } from './text-table.ts';
import { verdictLines } from './verdict.ts';

export function terminalReport(report: Report): string {
  const sections = [
    heading(report),
    verdictLines(report)
      .map((line) => `• ${line}`)
      .join('\n'),
    definitions(report.overall),
    categories(report),
    slots(report),
    splits(report),
    rejected(report),
    reliability(report),
    speed(report),
    gates(report),
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

function heading({ provenance, settings, complete, overall }: Report): string {
  const drafter = provenance.drafters[0];
  return [
    `${provenance.target.folder} with ${drafter?.name ?? '–'} · ${settings.weights} · ${settings.device} · ${settings.threads} threads`,
    `${overall.prompts} prompts · ${overall.rounds} rounds · ${overall.tokens} tokens at temperature ${settings.temperatures[0]} · drafts of ${settings.draftTokens}`,
    'Brackets are 95 % intervals by bootstrap over prompts.',
    ...(complete ? [] : ['INTERRUPTED: the figures are of what was done by then.']),
    ...[leftOut(provenance.prompts) ?? []].flat(),
  ].join('\n');
}

function definitions(overall: Acceptance): string {
  const rows: readonly (readonly [string, string, Interval, number])[] = [
    ['emittedPerStep', 'tokens delivered per round (z-lab)', overall.emittedPerStep, 3],
    ['meanAcceptanceLength', '1 + accepted / drafts (vLLM)', overall.meanAcceptanceLength, 3],
    ['macroMeanAcceptanceLength', 'the same, mean over requests', overall.macroMeanAcceptanceLength, 3],
    ['completionPerVerify', 'all tokens / rounds (SGLang)', overall.completionPerVerify, 3],
    ['draftAcceptanceRate', 'accepted / drafted (vLLM, llama.cpp)', overall.draftAcceptanceRate, 3],
    ['evaluatedRate', 'accepted / compared (ORT GenAI)', overall.evaluatedRate, 3],
    ['draftedShare', 'drafted share of the text (dflash-mlx)', overall.draftedShare, 3],
    ['fullBlocks', 'rounds accepted whole', overall.fullBlocks, 3],
    ['zeroBlocks', 'rounds that accepted nothing', overall.zeroBlocks, 3],
  ];
  return textTable(
    ['acceptance', 'definition', 'value'],
    rows.map(([name, meaning, interval, digits]) => [name, meaning, formatInterval(interval, digits)]),
  );
}

function categories({ categories: groups, overall, forcedCategories, forced }: Report): string {
  const row = (name: string, acceptance: Acceptance, accuracy: number | null) => [
    name,
    String(acceptance.prompts),
    formatInterval(acceptance.emittedPerStep),
    formatShare(acceptance.draftAcceptanceRate.value),
    formatShare(acceptance.fullBlocks.value),
    formatShare(acceptance.zeroBlocks.value),
    formatShare(accuracy),
  ];
  return textTable(
    ['category', 'prompts', 'tokens per round', 'rate %', 'whole %', 'zero %', 'slot 1 forced %'],
    [
      ...Object.entries(groups).map(([name, group]) =>
        row(name, group, forcedCategories[name]?.accuracyBySlot[0]?.value ?? null),
      ),
      row('all', overall, forced.accuracyBySlot[0]?.value ?? null),
    ],
  );
}

function slots({ overall, forced, consistency, rejections }: Report): string {
  const share = (interval: Interval | undefined) => formatShare(interval?.value ?? null);
  const coverage = (k: number, slot: number) => share(forced.coverage?.find((entry) => entry.k === k)?.bySlot[slot]);
  return textTable(
    [
      'slot',
      'of proposed %',
      'of inside %',
      'conditional %',
      'walked %',
      'forced %',
      'top 4 %',
      'top 16 %',
      '1−TV %',
      'p(rejected) %',
    ],
    overall.perPositionProposed.map((accepted, slot) => [
      String(slot + 1),
      share(accepted),
      share(overall.perPositionInside[slot]),
      share(overall.conditionalEvaluated[slot]),
      share(consistency.forcedBySlot[slot]),
      share(forced.accuracyBySlot[slot]),
      coverage(4, slot),
      coverage(16, slot),
      share(forced.overlapBySlot?.[slot]),
      share(rejections.probabilityBySlot[slot]),
    ]),
  );
}

function splits({ byContextLength, byTemperature, byFinish, overall, endings }: Report): string {
  const row = (name: string, { prompts, rounds, emittedPerStep, draftAcceptanceRate }: Acceptance) => [
    name,
    String(prompts),
    String(rounds),
    formatInterval(emittedPerStep),
    formatShare(draftAcceptanceRate.value),
  ];
  const { rejected: rejectedRounds, whole, answerEnded, noDraft } = endings;
  return [
    textTable(
      ['split', 'prompts', 'rounds', 'tokens per round', 'rate %'],
      [
        ...byTemperature.map(({ temperature, acceptance }) => row(`temperature ${temperature}`, acceptance)),
        ...byContextLength.map(({ from, to, acceptance }) => row(`context ${from} to ${to}`, acceptance)),
        ...Object.entries(byFinish).map(([finish, acceptance]) => row(`answer ended by ${finish}`, acceptance)),
      ],
    ),
    `Rounds ended with a rejection ${rejectedRounds}, accepted whole ${whole}, with the answer ${answerEnded}, without a draft ${noDraft}. ` +
      `Accepted tokens 0, 1, …: ${overall.acceptanceHistogram.join(', ')}.`,
  ].join('\n\n');
}

function rejected({ rejections: { rejected: count, rejectedProbability, chosenProbability, byRank } }: Report): string {
  if (count === 0) return '';
  const ranks = byRank
    .filter(({ rounds }) => rounds > 0)
    .map(
      ({ from, to, rounds }) =>
        `${to === null ? `${from}+` : from === to ? from : `${from}–${to}`}: ${formatShare(rounds / count)} %`,
    );
  return (
    `Of ${count} rejections the target gave the rejected token ${formatInterval(rejectedProbability, 3)} and its own ${formatInterval(chosenProbability, 3)}; ` +
    `tokens it preferred: ${ranks.join(', ')}.`
  );
}

function reliability({ forced: { calibration } }: Report): string {
  if (calibration === null) return '';
  return [
    textTable(
      ['confidence', 'slots', 'mean confidence %', 'right %'],
      calibration.bins
        .filter(({ slots: count }) => count > 0)
        .map(({ from, to, slots: count, confidence, accuracy }) => [
          `${from.toFixed(1)}–${to.toFixed(1)}`,
          String(count),
          formatShare(confidence),
          formatShare(accuracy),
        ]),
    ),
    `Expected calibration error ${formatNumber(calibration.expectedCalibrationError, 3)}, overconfidence ${formatNumber(calibration.overconfidence, 3)}.`,
  ].join('\n');
}

function speed({ speed: measured }: Report): string {
  if (measured === null) return '';
  return [
    textTable(
      ['draft tokens', 'tokens per round', 'round ms', 'predicted speed-up', 'break-even'],
      measured.byDraftLength.map(({ draftTokens, acceptanceLength, roundMs, speedUp, breakEven }) => [
        String(draftTokens),
        formatNumber(acceptanceLength),
        formatNumber(roundMs, 1),
        formatNumber(speedUp),
        formatNumber(breakEven),
      ]),
    ),
    `Measured ${formatNumber(measured.tokensPerSecond, 1)} tokens/s against ${formatNumber(measured.plainTokensPerSecond, 1)} plain: ` +
      `speed-up ${formatInterval(measured.speedUp)} over ${measured.prompts} prompts at temperature ${measured.temperature}.`,
  ].join('\n');
}

function gates({ gates: all }: Report): string {
  return all
    .map(
      ({ name, threshold, value, passed }) =>
        `${passed ? 'passed' : 'FAILED'}  ${name} ${threshold}: ${formatNumber(value, 3)}`,
    )
    .join('\n');
}
