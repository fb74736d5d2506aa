/**
 * Throughput of several clients at once: plain decoding, each fixed draft length, and `auto`, by kind of prompt.
 *
 * A machine that slows down for seconds makes single runs differ by a third, so each run of a variant lies between two
 * plain ones and is compared with their mean; figures are medians of such ratios, with their quartiles. Every variant
 * has run in a cell before it is measured, as `auto` learns from what it serves.
 *
 *   npx tsx bench/concurrency.ts [--clients 1,2,4,8] [--tokens 40] [--repeats 6] [--kinds …] [--lengths 1,2,3] [--out file]
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DEFAULT_TARGET } from '../src/cli/serve-options.ts';
import { type OpenEngineOptions, type OpenedEngine, openEngine } from '../src/engine/open-engine.ts';
import { IoBinding } from '../src/onnx/io-binding.ts';
import { answer, chatRequest } from './lib/generate.ts';
import { provenance } from './lib/provenance.ts';
import { mean, median, quantile } from './lib/statistics.ts';
import { table } from './lib/table.ts';
import prompts from './prompts.json' with { type: 'json' };

const { values: flags } = parseArgs({
  options: {
    clients: { type: 'string', default: '1,2,4,8' },
    tokens: { type: 'string', default: '40' },
    repeats: { type: 'string', default: '6' },
    kinds: { type: 'string', default: Object.keys(prompts).join() },
    lengths: { type: 'string', default: '1,2,3' },
    threads: { type: 'string', default: '2' },
    weights: { type: 'string', default: 'int8' },
    drafter: { type: 'string', default: 'dflash' },
    out: { type: 'string' },
  },
});
const clients = flags.clients.split(',').map(Number);
const maxTokens = Number(flags.tokens);
const WARM_UP_RUNS = 3;

/** Time between steps in which all clients decode, everything between them included, and what was emitted in it. */
interface Window {
  tokens: number;
  ms: number;
  /** The part of it inside ONNX Runtime. */
  bareMs: number;
  /** End of the last such step; null after another. */
  lastEnd: number | null;
}

/** Time inside ONNX Runtime since the last step. */
let bareMs = 0;
const run = IoBinding.prototype.run;
IoBinding.prototype.run = async function (signal) {
  const started = performance.now();
  await run.call(this, signal);
  bareMs += performance.now() - started;
};

function open(drafter: string, draftTokens: number | 'auto', window: { current: Window; width: number }) {
  const options: OpenEngineOptions = {
    target: DEFAULT_TARGET,
    drafters: [drafter],
    drafterModules: [],
    draftTokens,
    weights: flags.weights as OpenEngineOptions['weights'],
    device: { kind: 'cpu' },
    threads: Number(flags.threads),
    maxContext: 1024,
    maxSequences: 8,
    maxRows: 256,
    maxWaiting: 64,
    limits: { prefixCacheBytes: 0 },
    servedModelName: null,
    cacheDir: null,
    observers: [
      {
        onStart: () => undefined,
        onFinish: () => undefined,
        onStep({ promptRows, sequences, emitted }) {
          const { current, width } = window;
          const end = promptRows > 0 || sequences !== width ? null : performance.now();
          if (end !== null && current.lastEnd !== null) {
            current.tokens += emitted;
            current.ms += end - current.lastEnd;
            current.bareMs += bareMs;
          }
          bareMs = 0;
          current.lastEnd = end;
        },
      },
    ],
  };
  return openEngine(options);
}

const window: { current: Window; width: number } = { current: { tokens: 0, ms: 0, bareMs: 0, lastEnd: null }, width: 1 };
const plain = await open('none', 'auto', window);
const auto = await open(flags.drafter, 'auto', window);
const longest = auto.drafters[0]?.drafter.maxDraftTokens ?? 0;
const fixed = await open(flags.drafter, longest, window);
const lengths = flags.lengths
  .split(',')
  .map(Number)
  .filter((length) => length <= longest);
for (const { warmUp } of [plain, auto, fixed]) await warmUp();

const variants: readonly { name: string; opened: OpenedEngine; draftTokens: number | null }[] = [
  { name: 'plain', opened: plain, draftTokens: 0 },
  ...lengths.map((length) => ({ name: `fixed ${length}`, opened: fixed, draftTokens: length })),
  { name: 'auto', opened: auto, draftTokens: null },
];

/** Tokens per second while all clients decode, and what they would be without the time outside ONNX Runtime. */
async function measure({ opened, draftTokens }: (typeof variants)[number], kind: string, width: number) {
  const list = prompts[kind as keyof typeof prompts];
  window.width = width;
  window.current = { tokens: 0, ms: 0, bareMs: 0, lastEnd: null };
  await Promise.all(
    Array.from({ length: width }, (_, i) =>
      answer(
        opened.engine,
        chatRequest(opened.engine, list[i % list.length] as string, maxTokens, { draftTokens, ignoreEos: true }),
      ),
    ),
  );
  const { tokens, ms, bareMs } = window.current;
  return { rate: (tokens / ms) * 1000, bareRate: (tokens / bareMs) * 1000 };
}

/** One cell of the table. */
interface Cell {
  readonly kind: string;
  readonly clients: number;
  readonly plain: { rate: number; bareRate: number }[];
  /** By variant: over the plain runs before and after, one for each repeat. */
  readonly overPlain: Map<string, number[]>;
}

async function measureCell(kind: string, width: number): Promise<Cell> {
  const [plainVariant, ...others] = variants as [(typeof variants)[number], ...(typeof variants)[number][]];
  for (let run = 0; run < WARM_UP_RUNS; run++) for (const variant of variants) await measure(variant, kind, width);
  const cell: Cell = { kind, clients: width, plain: [], overPlain: new Map(others.map(({ name }) => [name, []])) };
  let before = await measure(plainVariant, kind, width);
  cell.plain.push(before);
  for (let repeat = 0; repeat < Number(flags.repeats); repeat++) {
    for (const variant of repeat % 2 === 0 ? others : others.toReversed()) {
      const { rate } = await measure(variant, kind, width);
      const after = await measure(plainVariant, kind, width);
      cell.overPlain.get(variant.name)?.push((2 * rate) / (before.rate + after.rate));
      cell.plain.push(after);
      before = after;
    }
  }
  return cell;
}

const kinds = flags.kinds.split(',');
const cells: Cell[] = [];
for (const kind of kinds) for (const width of clients) cells.push(await measureCell(kind, width));

const cellOf = (kind: string, width: number | undefined) => cells.find((cell) => cell.kind === kind && cell.clients === width);
const plainRate = (cell: Cell | undefined) => median(cell?.plain.map(({ rate }) => rate) ?? []);
const bareRate = (cell: Cell | undefined) => median(cell?.plain.map((run) => run.bareRate) ?? []);
const names = variants.slice(1).map(({ name }) => name);
const rows = cells.map((cell) => {
  const first = cellOf(cell.kind, clients[0]);
  const overPlain = Object.fromEntries([...cell.overPlain].map(([name, ratios]) => [name, median(ratios)]));
  const quartiles = Object.fromEntries(
    [...cell.overPlain].map(([name, ratios]) => [name, [quantile(ratios, 0.25), quantile(ratios, 0.75)]]),
  );
  const bestFixed = Math.max(...lengths.map((length) => overPlain[`fixed ${length}`] ?? 0));
  return {
    kind: cell.kind,
    clients: cell.clients,
    plainTokensPerSecond: plainRate(cell),
    plainOverFirst: plainRate(cell) / plainRate(first),
    bareOverFirst: bareRate(cell) / bareRate(first),
    outsideRuns: 1 - plainRate(cell) / bareRate(cell),
    overPlain,
    quartiles,
    autoOverBest: (overPlain['auto'] ?? 0) / Math.max(bestFixed, 1),
  };
});
/** All kinds together, which says more of a small difference than one of them. */
const allKinds = clients.map((width) => ({
  clients: width,
  overPlain: Object.fromEntries(
    names.map((name) => [name, mean(rows.filter((row) => row.clients === width).map(({ overPlain }) => overPlain[name] ?? 0))]),
  ),
}));

const withQuartiles = (row: (typeof rows)[number], name: string) => {
  const [low, high] = row.quartiles[name] as [number, number];
  return `${(row.overPlain[name] ?? 0).toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
};
console.log(
  table(
    ['kind', 'clients', 'plain t/s', 'plain ×1', 'bare ×1', 'outside', ...names, 'auto / best'],
    rows.map((row) => [
      row.kind,
      row.clients,
      row.plainTokensPerSecond,
      row.plainOverFirst,
      row.bareOverFirst,
      row.outsideRuns,
      ...names.map((name) => withQuartiles(row, name)),
      row.autoOverBest,
    ]),
  ),
);
console.log(
  table(
    ['all kinds', ...names],
    allKinds.map(({ clients: width, overPlain }) => [`${width} clients`, ...names.map((name) => overPlain[name] ?? 0)]),
  ),
);
console.log(
  '\n×1: over the first number of clients; bare: the time inside ONNX Runtime only, and outside: the share of the rest. ' +
    'Draft lengths: over plain, with quartiles; best: of plain and the fixed lengths.',
);
const version = plain.summary.runtimeVersion;
for (const { engine } of [auto, fixed, plain]) await engine[Symbol.asyncDispose]();
const runs = cells.map(({ kind, clients: width, plain: runsOfPlain, overPlain }) => ({
  kind,
  clients: width,
  plain: runsOfPlain,
  overPlain: Object.fromEntries(overPlain),
}));
const result = { ...provenance(version), ...flags, rows, allKinds, runs };
if (flags.out !== undefined) writeFileSync(flags.out, `${JSON.stringify(result, null, 2)}\n`);
