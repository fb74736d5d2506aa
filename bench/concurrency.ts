/**
 * Throughput of several clients at once, each asking one question after the other: plain decoding, each fixed draft
 * length, and `auto`, by kind of prompt. Variants take turns, so that a machine that slows down slows all of them;
 * figures are medians of ratios of runs next to each other.
 *
 *   npx tsx bench/concurrency.ts [--clients 1,2,4,8] [--tokens 48] [--repeats 3] [--kinds …] [--lengths 1,3,5] [--out file]
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DEFAULT_TARGET } from '../src/cli/serve-options.ts';
import { type OpenEngineOptions, type OpenedEngine, openEngine } from '../src/engine/open-engine.ts';
import { IoBinding } from '../src/onnx/io-binding.ts';
import { answer, chatRequest } from './lib/generate.ts';
import { provenance } from './lib/provenance.ts';
import { median } from './lib/statistics.ts';
import { table } from './lib/table.ts';
import prompts from './prompts.json' with { type: 'json' };

const { values: flags } = parseArgs({
  options: {
    clients: { type: 'string', default: '1,2,4,8' },
    tokens: { type: 'string', default: '48' },
    repeats: { type: 'string', default: '3' },
    kinds: { type: 'string', default: Object.keys(prompts).join() },
    lengths: { type: 'string', default: '1,2,3,5,7' },
    threads: { type: 'string', default: '2' },
    weights: { type: 'string', default: 'int8' },
    drafter: { type: 'string', default: 'dflash' },
    out: { type: 'string' },
  },
});
const clients = flags.clients.split(',').map(Number);
const maxTokens = Number(flags.tokens);

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

/** By kind, clients and variant: tokens per second of each repeat. */
const rates = new Map<string, number[]>();
const key = (kind: string, width: number, variant: string) => `${kind} ${width} ${variant}`;
const kinds = flags.kinds.split(',');
for (let repeat = 0; repeat < Number(flags.repeats); repeat++) {
  for (const kind of kinds) {
    for (const width of clients) {
      for (const variant of repeat % 2 === 0 ? variants : variants.toReversed()) {
        const { rate, bareRate } = await measure(variant, kind, width);
        for (const [name, value] of [
          [variant.name, rate],
          [`${variant.name}, bare`, bareRate],
        ] as const) {
          rates.set(key(kind, width, name), [...(rates.get(key(kind, width, name)) ?? []), value]);
        }
      }
    }
  }
}

const of = (kind: string, width: number, variant: string) => rates.get(key(kind, width, variant)) ?? [];
const ratio = (above: readonly number[], below: readonly number[]) =>
  median(above.map((rate, i) => rate / (below[i] ?? Number.NaN)));
const rows = kinds.flatMap((kind) =>
  clients.map((width) => {
    const overPlain = Object.fromEntries(
      variants.slice(1).map(({ name }) => [name, ratio(of(kind, width, name), of(kind, width, 'plain'))]),
    );
    const fixedBest = Math.max(...lengths.map((length) => overPlain[`fixed ${length}`] ?? 0));
    return {
      kind,
      clients: width,
      plainTokensPerSecond: median(of(kind, width, 'plain')),
      plainOverOneClient: ratio(of(kind, width, 'plain'), of(kind, clients[0] ?? 1, 'plain')),
      bareOverOneClient: ratio(of(kind, width, 'plain, bare'), of(kind, clients[0] ?? 1, 'plain, bare')),
      outsideRuns: 1 - ratio(of(kind, width, 'plain'), of(kind, width, 'plain, bare')),
      autoOverOneClient: ratio(of(kind, width, 'auto'), of(kind, clients[0] ?? 1, 'auto')),
      overPlain,
      autoOverBestFixed: (overPlain['auto'] ?? 0) / fixedBest,
    };
  }),
);
console.log(
  table(
    [
      'kind',
      'clients',
      'plain t/s',
      'plain ×1',
      'bare ×1',
      'outside',
      'auto ×1',
      ...variants.slice(1).map(({ name }) => name),
      'auto / best fixed',
    ],
    rows.map((row) => [
      row.kind,
      row.clients,
      row.plainTokensPerSecond,
      row.plainOverOneClient,
      row.bareOverOneClient,
      row.outsideRuns,
      row.autoOverOneClient,
      ...variants.slice(1).map(({ name }) => row.overPlain[name] ?? 0),
      row.autoOverBestFixed,
    ]),
  ),
);
console.log(
  '\n×1: over one client, same variant; bare: the time inside ONNX Runtime only, and outside: the share of the rest. Draft lengths: over plain, same clients.',
);
const version = plain.summary.runtimeVersion;
for (const { engine } of [auto, fixed, plain]) await engine[Symbol.asyncDispose]();
const result = { ...provenance(version), ...flags, rows, rates: Object.fromEntries(rates) };
if (flags.out !== undefined) writeFileSync(flags.out, `${JSON.stringify(result, null, 2)}\n`);
