/** Every query of the dashboard, the alerts and the autoscaler asks for metrics and labels that the server has. */
import { beforeAll, describe, expect, it } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { SwapRecord } from '../../../src/engine/engine.ts';
import { createServerMetrics, type ServerMetrics } from '../../../src/server/metrics.ts';
import { promqlSelectors } from '../../support/promql.ts';
import { request } from '../engine/engine-fixture.ts';
import { dashboardSchema } from './dashboard-schema.ts';
import { manifests, only, read } from './deploy-files.ts';

/** Prometheus adds them when it scrapes; the last two where it scrapes pods. */
const SCRAPE_LABELS = ['instance', 'job', 'namespace', 'pod'];

const dashboard = JSON.parse(read('deploy/kubernetes/monitoring/dashboard.json'));
const panels = dashboard.panels.filter((panel: { readonly type: string }) => panel.type !== 'row');
const rules = only('PrometheusRule').spec.groups.flatMap((group: { readonly rules: readonly object[] }) => group.rules);
const adapterRules = manifests().find(({ file }) => file.endsWith('adapter-values.yaml'))!.object.rules.custom;

const queries: [string, string][] = [
  ...panels.flatMap((panel: { readonly title: string; readonly targets: readonly { readonly expr: string }[] }) =>
    panel.targets.map(({ expr }) => [`panel ${panel.title}`, expr.replaceAll('$__rate_interval', '5m')]),
  ),
  ...dashboard.templating.list.flatMap((variable: { readonly name: string; readonly definition?: string }) => {
    const [, query, label] = /^label_values\((.+), (\w+)\)$/.exec(variable.definition ?? '') ?? [];
    return query === undefined ? [] : [[`variable ${variable.name}`, `count by (${label}) (${query})`]];
  }),
  ...rules.map(({ alert, expr }: { readonly alert: string; readonly expr: string }) => [`alert ${alert}`, expr]),
  ...adapterRules.flatMap((rule: { readonly seriesQuery: string; readonly metricsQuery: string }) => [
    [`adapter ${rule.seriesQuery}`, rule.seriesQuery],
    [`adapter ${rule.metricsQuery}`, rule.metricsQuery.replaceAll('<<.LabelMatchers>>', 'pod="x"')],
  ]),
];

/** Names of all samples and their labels, once everything that is counted has happened. */
let served: ReadonlyMap<string, ReadonlySet<string>>;
beforeAll(async () => {
  const metrics = createServerMetrics({ modelName: 'm', version: '1', load: () => null });
  countEverything(metrics);
  served = labelsOfSamples(await metrics.render());
});

it('there is something to check', () => {
  expect(panels.length).toBeGreaterThan(20);
  expect(rules.length).toBeGreaterThan(5);
  expect(queries.length).toBeGreaterThan(50);
});

it.each(queries)('%s asks for what the server has', (_, query) => {
  const selectors = promqlSelectors(query);
  expect(selectors.length).toBeGreaterThan(0);
  for (const { metric, matchers, groupedBy } of selectors) {
    const labels = served.get(metric);
    expect(labels, `${metric} is no metric of the server`).toBeDefined();
    const known = [...labels!, ...SCRAPE_LABELS];
    expect(known).toEqual(expect.arrayContaining([...matchers.map(({ label }) => label), ...groupedBy]));
  }
});

it.each(queries)('%s compares labels with values that the documents name', (_, query) => {
  const documents = read('docs/metrics.md') + read('docs/http-api.md');
  for (const { matchers } of promqlSelectors(query)) {
    for (const { label, value } of matchers) {
      if (SCRAPE_LABELS.includes(label) || value.startsWith('$') || value === '') continue;
      for (const one of value.split('|')) expect(documents, `${label} ${one}`).toContain(`\`${one}\``);
    }
  }
});

it('all that the server counts is in docs/metrics.md', () => {
  const documented = read('docs/metrics.md');
  const own = [...served.keys()].filter((name) => name.startsWith('blockdraft:'));
  expect(own.length).toBeGreaterThan(40);
  for (const name of own) {
    const metric = name.slice('blockdraft:'.length).replace(/_(bucket|sum|count)$/, '');
    expect(documented).toMatch(new RegExp(`\`${metric}[\`{]`));
  }
});

describe('the dashboard', () => {
  it('is what Grafana takes', () => {
    expect(dashboardSchema.safeParse(dashboard).error?.issues ?? []).toEqual([]);
  });

  it('has panels of different ids that do not lie upon one another', () => {
    const all = dashboard.panels as { readonly id: number; readonly gridPos: Record<'x' | 'y' | 'w' | 'h', number> }[];
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    for (const [i, { gridPos: a }] of all.entries()) {
      expect(a.x + a.w).toBeLessThanOrEqual(24);
      for (const { gridPos: b } of all.slice(i + 1)) {
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
        expect(apart, JSON.stringify([a, b])).toBe(true);
      }
    }
  });

  it('takes its data from the source that is chosen, and shows only what is chosen', () => {
    for (const panel of panels) {
      expect(panel.datasource).toEqual({
        type: 'prometheus',
        uid: dashboard.templating.list[0].query === 'prometheus' ? '$' + '{datasource}' : '',
      });
      expect(panel.description).not.toBe('');
      for (const { expr } of panel.targets) {
        const selectors = promqlSelectors(expr.replaceAll('$__rate_interval', '5m'));
        // Any process that is scraped has metrics without our prefix: what stands beside them says which are meant.
        const own = selectors.filter(({ metric }) => metric.startsWith('blockdraft:'));
        expect(own.length, expr).toBeGreaterThan(0);
        for (const { matchers } of selectors) {
          expect(matchers).toContainEqual({ label: 'instance', operator: '=~', value: '$instance' });
        }
        for (const { matchers } of own) {
          expect(matchers).toContainEqual({ label: 'model_name', operator: '=~', value: '$model' });
        }
      }
    }
  });
});

it('each alert has a severity, a summary, a case for promtool and a row in docs/operations.md', () => {
  const operations = read('docs/operations.md');
  const cases = read('deploy/kubernetes/monitoring/prometheus-rule.test.yaml');
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\S/);
    expect(operations).toContain(`| \`${alert}\` |`);
    expect(cases).toMatch(new RegExp(`alertname: ${alert}\n +exp_alerts:\n`));
  }
});

it('the autoscaler asks for what the adapter makes', () => {
  const wanted = only('HorizontalPodAutoscaler').spec.metrics.map(
    (metric: { readonly pods: { readonly metric: { readonly name: string } } }) => metric.pods.metric.name,
  );
  const made = adapterRules.map((rule: { readonly name: { readonly as: string } }) => rule.name.as);
  expect(wanted.toSorted()).toEqual(made.toSorted());
});

/** One of everything that has a label. */
function countEverything(metrics: ServerMetrics): void {
  const counted = { drafted: 2, evaluated: 2, accepted: 1, emitted: 2 };
  metrics.onStart(request([1, 2]), { queriedTokens: 2, cachedTokens: 1 });
  metrics.onStep({
    durationMs: 1,
    draftMs: 1,
    sequences: 1,
    promptRows: 1,
    decodeRows: 3,
    emitted: 2,
    rounds: [
      { ...counted, shortBy: 'near-max-tokens', drafter: 'd' },
      { drafted: 0, evaluated: 0, accepted: 0, emitted: 1, shortBy: 'load', drafter: 'd' },
    ],
    shadows: [{ ...counted, shadow: 's', served: counted, drafter: 'd' }],
  });
  metrics.onFinish(request([1, 2]), {
    type: 'finish',
    reason: 'stop',
    stopReason: null,
    promptTokens: 2,
    cachedTokens: 1,
    completionTokens: 2,
    speculation: { drafter: 'd', maxDraftTokens: 2, rounds: [], noDraft: {}, shortened: {}, drafterError: null },
    timing: { queueMs: 1, firstTokenMs: 2, totalMs: 3 },
  });
  metrics.onQuarantine?.('d', 'too slow');
  metrics.onShadowFailure?.('s', 'failed');
  metrics.onSwap?.({ drafter: 'd', state: 'kept' } as SwapRecord);
  metrics.onAudit?.({
    request: request([1], { sampling: GREEDY }),
    drafter: 'd',
    outcome: 'equal',
    differsAt: null,
    served: { tokens: [], ending: { reason: 'stop', stopReason: null } },
    plain: null,
    error: null,
  });
  metrics.onTokenGap(1);
  metrics.onRejection('max_num_queued_reqs');
  metrics.onError('internal_error');
}

function labelsOfSamples(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const names = found.get(name) ?? new Set<string>();
    for (const [, label] of labels.matchAll(/(\w+)="/g)) names.add(label!);
    found.set(name, names);
  }
  return found;
}
