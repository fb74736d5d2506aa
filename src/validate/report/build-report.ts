/** From measured answers to a report. */
import type { ForcedAnswer, ServedAnswer } from '../measure/answer-records.ts';
import { consistency, lossless, pairAnswers } from './consistency.ts';
import { forcedAccuracy } from './forced-accuracy.ts';
import { forcedRun } from './forced-walk.ts';
import { checkGates, type Thresholds } from './gates.ts';
import { rejections } from './rejections.ts';
import { type Provenance, type Report, reportSchema, type Settings, type Speed } from './report-schema.ts';
import { countedAnswer, servedAcceptance } from './served-acceptance.ts';
import { byContextLength, endings, groupBy } from './served-splits.ts';

export interface ReportParts {
  readonly provenance: Provenance;
  readonly settings: Settings;
  readonly complete: boolean;
  readonly drafter: string;
  /** In the order of the settings' temperatures. */
  readonly passes: readonly { readonly served: readonly ServedAnswer[]; readonly forced: readonly ForcedAnswer[] }[];
  readonly speed: Speed | null;
  /** Answers of the speed measurement that differ, beside those of the passes. */
  readonly differing: Report['lossless']['differing'];
  /** Answers that were compared there. */
  readonly compared: number;
  readonly thresholds: Thresholds;
}

export function buildReport(parts: ReportParts): Report {
  const { settings, drafter } = parts;
  const { maxDraftTokens, seed } = settings;
  const { served, forced } = parts.passes[0] as ReportParts['passes'][number];
  const acceptance = (answers: readonly ServedAnswer[]) =>
    servedAcceptance(
      answers.map((answer) => countedAnswer(answer)),
      maxDraftTokens,
      seed,
    );
  const ofForced = (answers: readonly ForcedAnswer[]) =>
    forcedAccuracy(
      answers.map((answer) => forcedRun(answer, drafter)),
      maxDraftTokens,
      seed,
    );
  const each = <Item, Figure>(groups: ReadonlyMap<string, readonly Item[]>, make: (items: readonly Item[]) => Figure) =>
    Object.fromEntries([...groups].map(([name, items]) => [name, make(items)]));
  const compared = lossless(parts.passes.flatMap((pass) => pairAnswers(pass.served, pass.forced)));
  const report: Report = {
    format: 'blockdraft-validation',
    formatVersion: 1,
    provenance: parts.provenance,
    settings,
    complete: parts.complete,
    lossless: {
      compared: compared.compared + parts.compared,
      differing: [...compared.differing, ...parts.differing],
    },
    overall: acceptance(served),
    categories: each(
      groupBy(served, ({ category }) => category),
      acceptance,
    ),
    endings: endings(served),
    byFinish: each(
      groupBy(served, ({ finish }) => finish),
      acceptance,
    ),
    byContextLength: byContextLength(served, maxDraftTokens, seed),
    byTemperature: parts.passes.map((pass, i) => ({
      temperature: settings.temperatures[i] as number,
      acceptance: acceptance(pass.served),
    })),
    rejections: rejections(served, maxDraftTokens, seed),
    forced: ofForced(forced),
    forcedCategories: each(
      groupBy(forced, ({ category }) => category),
      ofForced,
    ),
    consistency: consistency(pairAnswers(served, forced), drafter, maxDraftTokens, seed),
    speed: parts.speed,
    gates: [],
  };
  return reportSchema.parse({ ...report, gates: checkGates(report, parts.thresholds) });
}
