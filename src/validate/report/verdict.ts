/** What a report says, in sentences. */
import { formatDifference, formatInterval, formatNumber, formatShare } from './format-figure.ts';
import type { Report } from './report-schema.ts';

/** Shares of a figure below which a difference is not worth a sentence. */
const NOTEWORTHY = 0.02;
const LARGE_CALIBRATION_ERROR = 0.1;

export function verdictLines(report: Report): string[] {
  return [losslessness(report), ...acceptance(report), ...consistency(report), ...confidence(report), ...speed(report)];
}

function losslessness({ lossless: { compared, differing } }: Report): string {
  if (differing.length === 0) return `Lossless: ${compared} answers have the same tokens with and without drafts.`;
  const [first] = differing;
  return (
    `NOT LOSSLESS: ${differing.length} of ${compared} answers differ with drafts, ${first?.id} from token ${first?.position} on; ` +
    'no other figure matters before that is found.'
  );
}

function acceptance({ overall, categories }: Report): string[] {
  const lines = [
    `${formatInterval(overall.emittedPerStep)} tokens per round; ${formatShare(overall.fullBlocks.value)} % of drafts are accepted whole, ` +
      `${formatShare(overall.zeroBlocks.value)} % not at all.`,
  ];
  const ranked = Object.entries(categories)
    .flatMap(([name, { emittedPerStep }]) => (emittedPerStep.value === null ? [] : [{ name, length: emittedPerStep.value }]))
    .sort((a, b) => b.length - a.length);
  const [best] = ranked;
  const worst = ranked.at(-1);
  if (best !== undefined && worst !== undefined && best !== worst) {
    lines.push(`Best at ${best.name} (${formatNumber(best.length)}), worst at ${worst.name} (${formatNumber(worst.length)}).`);
  }
  return lines;
}

function consistency({ consistency: { gap, forcedLength, servedLength, sameDrafts }, settings }: Report): string[] {
  if (forcedLength.value === null || servedLength.value === null || settings.draftTokens === 'auto') return [];
  const clear = gap.low !== null && gap.high !== null && (gap.low > 0 || gap.high < 0);
  const large = Math.abs(gap.value ?? 0) > NOTEWORTHY * forcedLength.value;
  const drafts =
    sameDrafts === null ? '' : `; ${formatShare(sameDrafts)} % of served drafts are what teacher forcing drafts there`;
  if (clear && large) {
    return [
      `Serving differs from teacher forcing by ${formatDifference(gap)} tokens per round (${formatNumber(forcedLength.value)} forced, ` +
        `${formatNumber(servedLength.value)} served)${drafts}: the drafter is fed something else when drafts are verified.`,
    ];
  }
  return [`Serving accepts what teacher forcing predicts (${formatDifference(gap)} tokens per round${drafts}).`];
}

function confidence({ forced: { calibration } }: Report): string[] {
  const error = calibration?.expectedCalibrationError ?? null;
  if (calibration === null || error === null || error < LARGE_CALIBRATION_ERROR) return [];
  const direction = (calibration.overconfidence ?? 0) > 0 ? 'too high' : 'too low';
  return [`Its confidence is ${direction}: expected calibration error ${formatNumber(error)}.`];
}

function speed({ speed: measured, settings }: Report): string[] {
  if (measured === null) return [];
  const lines = [
    measured.bestDraftTokens === 0
      ? `On this machine no draft length is predicted to gain; the nearest needs ${formatNumber(
          Math.min(...measured.byDraftLength.map(({ breakEven, acceptanceLength }) => breakEven - acceptanceLength)),
        )} tokens per round more.`
      : `Best predicted with drafts of ${measured.bestDraftTokens}: speed-up ${formatNumber(measured.predictedSpeedUp)}.`,
  ];
  const own = measured.byDraftLength.find(({ draftTokens }) => draftTokens === settings.draftTokens);
  const predicted =
    own === undefined
      ? ''
      : `, predicted ${formatNumber(own.speedUp)}; break-even there is ${formatNumber(own.breakEven)} tokens per round`;
  lines.push(`Measured speed-up ${formatInterval(measured.speedUp)} with drafts of ${settings.draftTokens}${predicted}.`);
  return lines;
}
