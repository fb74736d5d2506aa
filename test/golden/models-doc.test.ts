/**
 * The tables of docs/models.md say what was measured. `WRITE_DOCS=1 npx vitest run test/golden/models-doc.test.ts` writes
 * them anew.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { WeightFormat } from '../../src/checkpoint/weight-plan.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { measureDrafter, measurePair, measureTarget } from './measure-models.ts';

const DOC = join(import.meta.dirname, '../../docs/models.md');
const WRITES = process.env['WRITE_DOCS'] === '1';

const TARGETS = [
  ['llama', 'llama-tied'],
  ['llama', 'llama-rope3'],
  ['qwen2', 'qwen2-bias'],
  ['qwen3', 'qwen3-untied'],
  ['qwen3', 'qwen3-bf16'],
  ['qwen3', 'qwen3-yarn'],
  ['qwen3_moe', 'qwen3-moe'],
  ['qwen3_5', 'qwen3_5-nested'],
  ['qwen3_5', 'qwen3_5-text'],
] as const;
const FORMATS: readonly WeightFormat[] = ['f32', 'int8', 'int4'];
const DRAFTERS = [
  'dflash-random',
  'dflash-sliding',
  'dflash-noncausal',
  'dflash-yarn',
  'dflash-trained',
  'speculators-full',
  'speculators-reduced',
];

/** Trained, so that drafts are accepted. */
const PAIRS = ['dflash-trained', 'speculators-full', 'speculators-reduced'];

type Row = readonly string[];

const temporary = new TemporaryFolder();
const measured: Record<'targets' | 'drafters' | 'pairs', Row[]> = { targets: [], drafters: [], pairs: [] };

afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
  if (!WRITES) return;
  let doc = readFileSync(DOC, 'utf8');
  for (const [name, rows] of Object.entries(measured)) {
    const between = new RegExp(`(<!-- measured: ${name} -->\\n\\n(?:[^\\n]*\\n){2}).*?(\\n<!-- end -->)`, 's');
    doc = doc.replace(
      between,
      (_, head: string, tail: string) => `${head}${rows.map((row) => `| ${row.join(' | ')} |\n`).join('')}${tail}`,
    );
  }
  writeFileSync(DOC, doc);
});

/** The rows of a table, cell by cell. */
function documented(name: string): Row[] {
  const [, table = ''] =
    new RegExp(`<!-- measured: ${name} -->\\n\\n(.*?)\\n<!-- end -->`, 's').exec(readFileSync(DOC, 'utf8')) ?? [];
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** A bound that others can hold: the next of 1, 2, 5, 10, … above. */
function bound(error: number): string {
  const power = 10 ** Math.floor(Math.log10(error));
  const step = [1, 2, 5, 10].find((factor) => error <= factor * power)!;
  return (step * power).toExponential(0).replace('e+0', '');
}

/** Cells that are bounds may be loose by a factor: kernels of other processors round otherwise. All others are equal. */
function expectDocumented(rows: readonly Row[], key: number, row: Row, bounds: readonly number[]): void {
  const found = rows.filter((candidate) => candidate.slice(0, key).join() === row.slice(0, key).join());
  expect(found, `one row of ${row.slice(0, key).join(', ')} in docs/models.md`).toHaveLength(1);
  for (const [column, cell] of row.entries()) {
    const stated = found[0]![column]!;
    if (!bounds.includes(column)) expect(stated, `column ${column + 1} of ${row.slice(0, key).join(', ')}`).toBe(cell);
    else {
      expect(Number(stated), `the bound of ${row.slice(0, key).join(', ')} holds`).toBeGreaterThanOrEqual(Number(cell) / 2);
      expect(Number(stated), `the bound of ${row.slice(0, key).join(', ')} says something`).toBeLessThanOrEqual(
        Number(cell) * 10,
      );
    }
  }
}

const yesOrNo = (value: boolean) => (value ? 'yes' : 'NO');

describe('targets in docs/models.md', () => {
  const rows = documented('targets');

  it.each(TARGETS.flatMap(([family, name]) => FORMATS.map((format) => ({ family, name, format }))))(
    '$name in $format is as stated',
    async ({ family, name, format }) => {
      const { error, idsEqual, ids, sameText } = await measureTarget(name, format, temporary.path);
      // Where rounding decides, the number of equal tokens is the processor's; that there is no more to say is the fact.
      const equal = format === 'f32' ? `${idsEqual} of ${ids}` : '–';
      const row = [family, name, format, bound(error), equal, yesOrNo(sameText.ngram), yesOrNo(sameText.draftModel)];
      measured.targets.push(row);
      if (!WRITES) expectDocumented(rows, 3, row, [3]);
    },
  );

  it.skipIf(WRITES)('are all that are listed', () => {
    expect(rows).toHaveLength(TARGETS.length * FORMATS.length);
  });
});

describe('drafters in docs/models.md', () => {
  const rows = documented('drafters');

  it.each(DRAFTERS)('%s is as stated', async (name) => {
    const { layout, error, draftsEqual, drafts, runsEqual, runs } = await measureDrafter(name);
    const row = [layout, name, bound(error), `${draftsEqual} of ${drafts}`, `${runsEqual} of ${runs}`];
    measured.drafters.push(row);
    if (!WRITES) expectDocumented(rows, 2, row, [2]);
  });

  it.skipIf(WRITES)('are all that are listed', () => {
    expect(rows).toHaveLength(DRAFTERS.length);
  });
});

describe('drafters in other formats in docs/models.md', () => {
  const rows = documented('pairs');

  it.each(PAIRS.flatMap((name) => (['int8', 'int4'] as const).map((format) => ({ name, format }))))(
    '$name in $format is as stated',
    async ({ name, format }) => {
      const { layout, accepted, sameText } = await measurePair(name, format);
      // What 4 bits leave of models this small is the processor's rounding.
      const row = [layout, name, format, format === 'int4' ? '–' : yesOrNo(accepted), yesOrNo(sameText)];
      measured.pairs.push(row);
      if (!WRITES) expectDocumented(rows, 3, row, []);
    },
  );

  it.skipIf(WRITES)('are all that are listed', () => {
    expect(rows).toHaveLength(PAIRS.length * 2);
  });
});
