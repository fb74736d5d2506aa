/** The file of `--summary-export`, in k6's shape. */
import { createHash } from 'node:crypto';
import type { CheckGroup } from './check-tree.ts';
import type { SummaryData } from './summary-data.ts';

/** Values stand beside the thresholds, and a threshold is `true` when it was **crossed**, both as in k6. */
export function summaryExport({ metrics, root_group }: SummaryData): object {
  return {
    metrics: Object.fromEntries(
      Object.entries(metrics).map(([name, { values, thresholds }]) => [
        name,
        {
          ...values,
          ...(thresholds === undefined
            ? {}
            : { thresholds: Object.fromEntries(Object.entries(thresholds).map(([source, { ok }]) => [source, !ok])) }),
        },
      ]),
    ),
    root_group: exported(root_group),
  };
}

function exported({ name, path, groups, checks }: CheckGroup): object {
  return {
    name,
    path,
    id: idOf(path),
    groups: Object.fromEntries(groups.map((group) => [group.name, exported(group)])),
    checks: Object.fromEntries(checks.map((check) => [check.name, { ...check, id: idOf(check.path) }])),
  };
}

function idOf(path: string): string {
  return createHash('md5').update(path).digest('hex');
}
