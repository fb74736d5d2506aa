/** A report as one page with charts. */
import { escapeHtml } from './escape-html.ts';
import { formatInterval, formatNumber, formatShare } from './format-figure.ts';
import type { Interval } from './interval.ts';
import { leftOut } from './left-out.ts';
import { htmlTable, page } from './page.ts';
import type { Acceptance, Report } from './report-schema.ts';
import { barChart } from './svg/bar-chart.ts';
import { lineChart } from './svg/line-chart.ts';
import { verdictLines } from './verdict.ts';

export function htmlReport(report: Report): string {
  const name = report.provenance.drafters[0]?.name ?? 'drafter';
  return page(`${name} on ${report.provenance.target.folder}`, [
    heading(report, name),
    cards(report),
    `<ul class="verdict">${verdictLines(report)
      .map((line) => `<li>${escapeHtml(line)}</li>`)
      .join('')}</ul>`,
    gates(report),
    `<h2>Acceptance</h2><div class="charts">${[categoryChart(report), histogram(report)].join('')}</div>`,
    categoryTable(report),
    definitions(report.overall),
    `<h2>Slots of a draft</h2><div class="charts">${[slotChart(report), coverageChart(report)].join('')}</div>`,
    slotTable(report),
    '<p class="muted">Accepted draft tokens by slot, as a share of: all drafts (vLLM); drafts that had the slot; those with the slot inside the answer; those that were ' +
      'compared there, all before being accepted. Walked: what teacher forcing predicts for the third. Forced: right behind every token of the answer. ' +
      'p(rejected): what the target gave the rejected token.</p>',
    `<h2>Confidence and rejections</h2><div class="charts">${[calibrationChart(report), rankChart(report)].join('')}</div>`,
    `<h2>Context, temperature, ends</h2><div class="charts">${[contextChart(report), temperatureChart(report)].join('')}</div>`,
    splitTable(report),
    speed(report),
    origin(report),
  ]);
}

function heading({ provenance, settings, complete, overall }: Report, name: string): string {
  const interrupted = complete ? '' : '<p class="bad">Interrupted: the figures are of what was done by then.</p>';
  const missing = leftOut(provenance.prompts);
  return (
    `<h1>${escapeHtml(name)} on ${escapeHtml(provenance.target.folder)}</h1>` +
    `<p class="muted">${overall.prompts} prompts · ${overall.rounds} rounds · ${overall.tokens} tokens · temperature ${settings.temperatures[0]} · ` +
    `drafts of ${settings.draftTokens} · ${settings.weights} on ${settings.device} · ${escapeHtml(provenance.date.slice(0, 16).replace('T', ' '))} UTC. ` +
    `Bars and brackets are 95 % intervals by bootstrap over prompts.</p>${interrupted}${missing === null ? '' : `<p class="bad">${escapeHtml(missing)}</p>`}`
  );
}

function cards({ overall, forced, lossless, speed: measured }: Report): string {
  const card = (value: string, label: string, kind = '') =>
    `<div class="card"><b class="${kind}">${value}</b><span>${label}</span></div>`;
  const differing = lossless.differing.length;
  return `<div class="cards">${[
    card(formatNumber(overall.emittedPerStep.value), 'tokens per round'),
    card(`${formatShare(overall.draftAcceptanceRate.value)} %`, 'of draft tokens accepted'),
    card(`${formatShare(forced.accuracyBySlot[0]?.value ?? null)} %`, 'slot 1 right, teacher-forced'),
    card(measured === null ? '–' : `${formatNumber(measured.speedUp.value)} ×`, 'measured speed-up'),
    differing === 0
      ? card('lossless', `${lossless.compared} answers compared`, 'good')
      : card(`${differing} differ`, `of ${lossless.compared} answers`, 'bad'),
  ].join('')}</div>`;
}

function gates({ gates: all }: Report): string {
  if (all.length === 0) return '';
  return htmlTable(
    ['gate', 'threshold', 'value', ''],
    all.map(({ name, threshold, value, passed }) => [
      name,
      String(threshold),
      formatNumber(value, 3),
      passed ? 'passed' : 'FAILED',
    ]),
  );
}

function categoryChart({ categories, overall }: Report): string {
  return barChart({
    title: 'Tokens per round by category',
    xLabel: 'category',
    yLabel: 'tokens per round',
    from: 1,
    bars: [...Object.entries(categories), ['all', overall] as const].map(([name, { emittedPerStep }]) => ({
      name,
      y: emittedPerStep,
    })),
  });
}

function histogram({ overall: { acceptanceHistogram } }: Report): string {
  const total = acceptanceHistogram.reduce((sum, rounds) => sum + rounds, 0) || 1;
  return barChart({
    title: 'Rounds by accepted draft tokens',
    xLabel: 'accepted draft tokens',
    yLabel: '% of rounds',
    bars: acceptanceHistogram.map((rounds, accepted) => ({ name: String(accepted), y: exact((100 * rounds) / total) })),
  });
}

function exact(value: number | null): Interval {
  return { value, low: null, high: null };
}

function percent({ value, low, high }: Interval): Interval {
  const scaled = (share: number | null) => (share === null ? null : 100 * share);
  return { value: scaled(value), low: scaled(low), high: scaled(high) };
}

function bySlot(intervals: readonly Interval[]) {
  return intervals.map((interval, slot) => ({ x: slot + 1, y: percent(interval) }));
}

function slotChart({ overall, forced, consistency }: Report): string {
  return lineChart({
    title: 'Acceptance by slot',
    xLabel: 'slot of the draft',
    yLabel: '%',
    yDomain: [0, 100],
    lines: [
      { name: 'served, slot inside the answer', points: bySlot(overall.perPositionInside) },
      { name: 'teacher forcing, walked as serving', points: bySlot(consistency.forcedBySlot), dashed: true },
      { name: 'teacher-forced accuracy, all anchors', points: bySlot(forced.accuracyBySlot) },
      { name: 'served, given all before', points: bySlot(overall.conditionalEvaluated) },
    ],
  });
}

function coverageChart({ forced: { coverage, overlapBySlot } }: Report): string {
  return lineChart({
    title: 'The target’s token among the drafter’s first k, and 1 − TV',
    xLabel: 'slot of the draft',
    yLabel: '%',
    yDomain: [0, 100],
    lines: [
      ...(coverage ?? []).map(({ k, bySlot: intervals }) => ({ name: `top ${k}`, points: bySlot(intervals) })),
      ...(overlapBySlot === null ? [] : [{ name: '1 − TV', points: bySlot(overlapBySlot), dashed: true }]),
    ],
  });
}

function calibrationChart({ forced: { calibration } }: Report): string {
  if (calibration === null) return '';
  return lineChart({
    title: `Right by confidence (calibration error ${formatNumber(calibration.expectedCalibrationError, 3)})`,
    xLabel: 'mean confidence of the drafter',
    yLabel: 'share that is right',
    xDomain: [0, 1],
    yDomain: [0, 1],
    diagonal: true,
    lines: [
      {
        name: 'drafter',
        points: calibration.bins.flatMap(({ confidence, accuracy }) =>
          confidence === null ? [] : [{ x: confidence, y: exact(accuracy) }],
        ),
      },
    ],
  });
}

function rankChart({ rejections: { byRank, rejected } }: Report): string {
  return barChart({
    title: 'Rejected tokens by the number the target preferred',
    xLabel: 'tokens preferred',
    yLabel: '% of rejections',
    bars: byRank
      .filter(({ from, rounds }) => from > 0 || rounds > 0)
      .map(({ from, to, rounds }) => ({
        name: to === null ? `${from}+` : from === to ? String(from) : `${from}–${to}`,
        y: exact(rejected === 0 ? null : (100 * rounds) / rejected),
      })),
  });
}

function contextChart({ byContextLength }: Report): string {
  if (byContextLength.length < 2) return '';
  return barChart({
    title: 'Tokens per round by context length',
    xLabel: 'position of the anchor',
    yLabel: 'tokens per round',
    from: 1,
    bars: byContextLength.map(({ from, to, acceptance }) => ({ name: `${from}–${to}`, y: acceptance.emittedPerStep })),
  });
}

function temperatureChart({ byTemperature }: Report): string {
  if (byTemperature.length < 2) return '';
  return barChart({
    title: 'Tokens per round by temperature',
    xLabel: 'temperature',
    yLabel: 'tokens per round',
    from: 1,
    bars: byTemperature.map(({ temperature, acceptance }) => ({ name: String(temperature), y: acceptance.emittedPerStep })),
  });
}

function categoryTable({ categories, overall, forcedCategories, forced }: Report): string {
  const row = (name: string, group: Acceptance, accuracy: number | null, streak: number | null) => [
    name,
    String(group.prompts),
    String(group.rounds),
    formatInterval(group.emittedPerStep),
    formatInterval(group.meanAcceptanceLength),
    formatShare(group.draftAcceptanceRate.value),
    formatShare(group.fullBlocks.value),
    formatShare(group.zeroBlocks.value),
    formatShare(accuracy),
    formatNumber(streak),
  ];
  return htmlTable(
    [
      'category',
      'prompts',
      'rounds',
      'tokens per round',
      '1 + accepted/drafts',
      'rate %',
      'whole %',
      'zero %',
      'slot 1 forced %',
      'streak',
    ],
    [
      ...Object.entries(categories).map(([name, group]) =>
        row(
          name,
          group,
          forcedCategories[name]?.accuracyBySlot[0]?.value ?? null,
          forcedCategories[name]?.streak.value ?? null,
        ),
      ),
      row('all', overall, forced.accuracyBySlot[0]?.value ?? null, forced.streak.value),
    ],
  );
}

function definitions(overall: Acceptance): string {
  return htmlTable(
    ['acceptance, all definitions', 'value'],
    [
      ['tokens delivered per round (z-lab)', formatInterval(overall.emittedPerStep, 3)],
      ['1 + accepted / drafts, pooled (vLLM, AIPerf)', formatInterval(overall.meanAcceptanceLength, 3)],
      ['1 + accepted / drafts, mean over requests (z-lab, macro)', formatInterval(overall.macroMeanAcceptanceLength, 3)],
      ['all tokens / rounds (SGLang)', formatInterval(overall.completionPerVerify, 3)],
      ['accepted / drafted (vLLM, llama.cpp)', formatInterval(overall.draftAcceptanceRate, 3)],
      ['accepted / compared (ONNX Runtime GenAI)', formatInterval(overall.evaluatedRate, 3)],
      ['drafted share of the text (dflash-mlx)', formatInterval(overall.draftedShare, 3)],
    ],
  );
}

function slotTable({ overall, forced, consistency, rejections }: Report): string {
  const share = (interval: Interval | undefined) => formatShare(interval?.value ?? null);
  return htmlTable(
    [
      'slot',
      'accepted',
      'inside',
      'compared',
      'of drafts %',
      'of proposed %',
      'of inside %',
      'conditional %',
      'walked %',
      'forced %',
      '1 − TV %',
      'p(rejected) %',
    ],
    overall.perPosition.map((accepted, slot) => [
      String(slot + 1),
      ...countsAt(overall, slot),
      share(accepted),
      share(overall.perPositionProposed[slot]),
      share(overall.perPositionInside[slot]),
      share(overall.conditionalEvaluated[slot]),
      share(consistency.forcedBySlot[slot]),
      share(forced.accuracyBySlot[slot]),
      share(forced.overlapBySlot?.[slot]),
      share(rejections.probabilityBySlot[slot]),
    ]),
  );
}

function countsAt({ countsBySlot }: Acceptance, slot: number): readonly string[] {
  const { accepted = 0, inside = 0, compared = 0 } = countsBySlot[slot] ?? {};
  return [accepted, inside, compared].map(String);
}

function splitTable({ byFinish, byContextLength, byTemperature, endings }: Report): string {
  const row = (name: string, { prompts, rounds, emittedPerStep, draftAcceptanceRate }: Acceptance) => [
    name,
    String(prompts),
    String(rounds),
    formatInterval(emittedPerStep),
    formatShare(draftAcceptanceRate.value),
  ];
  const { rejected, whole, answerEnded, noDraft, shortBy } = endings;
  const reasons = Object.entries(shortBy).map(([reason, rounds]) => `${reason} ${rounds}`);
  return (
    htmlTable(
      ['split', 'prompts', 'rounds', 'tokens per round', 'rate %'],
      [
        ...byTemperature.map(({ temperature, acceptance }) => row(`temperature ${temperature}`, acceptance)),
        ...byContextLength.map(({ from, to, acceptance }) => row(`context ${from} to ${to}`, acceptance)),
        ...Object.entries(byFinish).map(([finish, acceptance]) => row(`answer ended by ${finish}`, acceptance)),
      ],
    ) +
    `<p>Rounds ended with a rejection ${rejected}, with a draft accepted whole ${whole}, with the answer ${answerEnded}, without a draft ${noDraft}.` +
    `${reasons.length === 0 ? '' : ` Drafts were short by: ${escapeHtml(reasons.join(', '))}.`}</p>`
  );
}

function speed({ speed: measured, settings }: Report): string {
  if (measured === null) return '';
  const chart = lineChart({
    title: 'Predicted speed-up by draft length',
    xLabel: 'draft tokens',
    yLabel: 'speed-up',
    level: { y: 1, name: 'plain decoding' },
    lines: [
      {
        name: 'predicted from acceptance and costs',
        points: measured.byDraftLength.map(({ draftTokens, speedUp }) => ({ x: draftTokens, y: exact(speedUp) })),
      },
      // Drafts that are as long as pays have no one place on this axis.
      ...(settings.draftTokens === 'auto'
        ? []
        : [{ name: 'measured', points: [{ x: settings.draftTokens, y: measured.speedUp }] }]),
    ],
  });
  const lengths = lineChart({
    title: 'Tokens per round, and what breaks even',
    xLabel: 'draft tokens',
    yLabel: 'tokens per round',
    lines: [
      {
        name: 'accepted (walked)',
        points: measured.byDraftLength.map(({ draftTokens, acceptanceLength }) => ({
          x: draftTokens,
          y: exact(acceptanceLength),
        })),
      },
      {
        name: 'needed to break even',
        points: measured.byDraftLength.map(({ draftTokens, breakEven }) => ({ x: draftTokens, y: exact(breakEven) })),
        dashed: true,
      },
    ],
  });
  const costs = htmlTable(
    ['rows of a step', ...measured.stepMs.map(({ rows }) => String(rows)), 'draft'],
    [['ms', ...measured.stepMs.map(({ ms }) => formatNumber(ms, 1)), formatNumber(measured.draftMs, 1)]],
  );
  return (
    `<h2>Speed on this machine</h2><p>${formatNumber(measured.tokensPerSecond, 1)} tokens/s with drafts, ${formatNumber(measured.plainTokensPerSecond, 1)} without, by turns, ` +
    `one request at a time at temperature ${measured.temperature}: speed-up ${formatInterval(measured.speedUp)}.</p><div class="charts">${chart}${lengths}</div>${costs}`
  );
}

function origin({ provenance, settings }: Report): string {
  const rows = [
    ['command', provenance.command],
    ['version', `${provenance.version}${provenance.commit === null ? '' : ` (${provenance.commit})`}`],
    ['target', `${provenance.target.folder} · sha256 ${provenance.target.sha256.slice(0, 16)}…`],
    ...provenance.drafters.map(({ name, sha256 }) => [
      'drafter',
      `${name}${sha256 === null ? '' : ` · sha256 ${sha256.slice(0, 16)}…`}`,
    ]),
    [
      'prompts',
      `${provenance.prompts.file} · ${provenance.prompts.count} used · sha256 ${provenance.prompts.sha256.slice(0, 16)}…`,
    ],
    ['machine', `${provenance.cpu} · ${provenance.cores} cores · ${provenance.memoryGiB} GiB · ${settings.threads} threads`],
    ['software', `Node ${provenance.node} · ONNX Runtime ${provenance.onnxRuntime}`],
  ];
  return `<h2>Provenance</h2>${rows.map(([key, value]) => `<div><span class="muted">${key}</span> <code>${escapeHtml(value ?? '')}</code></div>`).join('')}`;
}
