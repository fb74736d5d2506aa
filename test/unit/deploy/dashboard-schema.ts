/** Of Grafana's dashboards (schema version 39), as far as they are used here; keys and values as Grafana documents them. */
import { z } from 'zod';

const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.string() });

const gridPos = z.strictObject({
  x: z.int().min(0).max(23),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});

/** Ids of Grafana's units. */
const unit = z.enum(['bytes', 'ops', 'percentunit', 'reqps', 's', 'short', 'tps']);
const scale = { unit, min: z.number().optional(), max: z.number().optional() };
const target = { refId: z.string().regex(/^[A-Z]$/), expr: z.string().min(1), legendFormat: z.string().optional() };
const reduceOptions = z.strictObject({ calcs: z.array(z.enum(['lastNotNull', 'mean', 'max', 'min', 'sum'])).length(1) });
const noOverrides = z.array(z.never());

const panel = {
  id: z.int().positive(),
  title: z.string().min(1),
  description: z.string().min(1),
  datasource,
  gridPos,
};

const timeseries = z.strictObject({
  ...panel,
  type: z.literal('timeseries'),
  fieldConfig: z.strictObject({
    defaults: z.strictObject({
      ...scale,
      custom: z.strictObject({
        fillOpacity: z.int().min(0).max(100),
        showPoints: z.enum(['auto', 'never', 'always']),
        stacking: z.strictObject({ mode: z.enum(['none', 'normal', 'percent']) }),
      }),
    }),
    overrides: noOverrides,
  }),
  options: z.strictObject({
    legend: z.strictObject({ displayMode: z.enum(['list', 'table', 'hidden']), placement: z.enum(['bottom', 'right']) }),
    tooltip: z.strictObject({ mode: z.enum(['single', 'multi', 'none']) }),
  }),
  targets: z.array(z.strictObject(target)).min(1),
});

/** Panels of the last value ask for no more than that one. */
const instantTargets = z.array(z.strictObject({ ...target, instant: z.literal(true) })).min(1);

const bargauge = z.strictObject({
  ...panel,
  type: z.literal('bargauge'),
  fieldConfig: z.strictObject({ defaults: z.strictObject(scale), overrides: noOverrides }),
  options: z.strictObject({
    reduceOptions,
    orientation: z.enum(['auto', 'horizontal', 'vertical']),
    displayMode: z.enum(['basic', 'gradient', 'lcd']),
  }),
  targets: instantTargets,
});

const stat = z.strictObject({
  ...panel,
  type: z.literal('stat'),
  fieldConfig: z.strictObject({
    defaults: z.strictObject({
      ...scale,
      thresholds: z.strictObject({
        mode: z.enum(['absolute', 'percentage']),
        steps: z.array(z.strictObject({ color: z.string(), value: z.number().nullable() })).min(1),
      }),
    }),
    overrides: noOverrides,
  }),
  options: z.strictObject({ reduceOptions, colorMode: z.enum(['none', 'value', 'background', 'background_solid']) }),
  targets: instantTargets,
});

const row = z.strictObject({
  id: z.int().positive(),
  type: z.literal('row'),
  title: z.string().min(1),
  collapsed: z.literal(false),
  gridPos,
  // Those of an open row follow it.
  panels: z.array(z.never()),
});

const variable = { name: z.string().regex(/^\w+$/), label: z.string() };
const current = z.strictObject({ text: z.string(), value: z.string() });

export const dashboardSchema = z.strictObject({
  uid: z.string().max(40),
  title: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
  schemaVersion: z.literal(39),
  editable: z.boolean(),
  graphTooltip: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  timezone: z.enum(['browser', 'utc']),
  refresh: z.string().regex(/^\d+[sm]$/),
  time: z.strictObject({ from: z.string(), to: z.string() }),
  annotations: z.strictObject({ list: z.array(z.never()) }),
  links: z.array(z.never()),
  templating: z.strictObject({
    list: z.array(
      z.discriminatedUnion('type', [
        z.strictObject({
          ...variable,
          type: z.literal('datasource'),
          query: z.literal('prometheus'),
          current: z.strictObject({}),
        }),
        z.strictObject({
          ...variable,
          type: z.literal('query'),
          datasource,
          query: z.strictObject({ query: z.string(), refId: z.string() }),
          definition: z.string(),
          includeAll: z.boolean(),
          multi: z.boolean(),
          allValue: z.string(),
          current,
          /** Never, when the dashboard is loaded, when its time changes. */
          refresh: z.union([z.literal(0), z.literal(1), z.literal(2)]),
          sort: z.int().min(0).max(8),
        }),
      ]),
    ),
  }),
  panels: z.array(z.discriminatedUnion('type', [timeseries, bargauge, stat, row])).min(1),
});
