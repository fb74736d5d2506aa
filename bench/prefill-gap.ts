/**
 * What a long prompt does to answers that are being streamed: gaps between their deliveries, with and without a bound on
 * the time of a step. Both engines take turns, so that a machine that slows down slows both.
 *
 *   npx tsx bench/prefill-gap.ts [--repeats 5] [--streams 3] [--prompt-tokens 2000] [--max-step-ms 100] [--out file]
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DEFAULT_TARGET } from '../src/cli/serve-options.ts';
import { DEFAULT_ENGINE_LIMITS } from '../src/engine/engine-limits.ts';
import { type OpenedEngine, openEngine } from '../src/engine/open-engine.ts';
import { answer, chatRequest } from './lib/generate.ts';
import { provenance } from './lib/provenance.ts';
import { median, quantile } from './lib/statistics.ts';
import { table } from './lib/table.ts';
import prompts from './prompts.json' with { type: 'json' };

const { values: flags } = parseArgs({
  options: {
    repeats: { type: 'string', default: '5' },
    streams: { type: 'string', default: '3' },
    'prompt-tokens': { type: 'string', default: '2000' },
    'max-step-ms': { type: 'string', default: String(DEFAULT_ENGINE_LIMITS.maxStepMs) },
    drafter: { type: 'string', default: 'dflash' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string' },
  },
});
const streams = Number(flags.streams);
const promptTokens = Number(flags['prompt-tokens']);

function open(maxStepMs: number): Promise<OpenedEngine> {
  return openEngine({
    target: DEFAULT_TARGET,
    drafters: [flags.drafter],
    drafterModules: [],
    draftTokens: 'auto',
    weights: 'int8',
    device: { kind: 'cpu' },
    threads: Number(flags.threads),
    maxContext: null,
    maxSequences: 8,
    maxRows: 256,
    maxWaiting: 64,
    limits: { maxStepMs },
    servedModelName: null,
    cacheDir: null,
    observers: [],
  });
}

interface Sample {
  readonly gaps: readonly number[];
  readonly firstTokenMs: number;
}

async function measure({ engine }: OpenedEngine, seed: number): Promise<Sample> {
  const arrivals: number[][] = [];
  const stop = new AbortController();
  const running = prompts.explain.slice(0, streams).map(async (prompt, i) => {
    arrivals[i] = [];
    const request = chatRequest(engine, prompt, 4000, { ignoreEos: true });
    for await (const event of engine.generate(request, stop.signal)) {
      if (event.type === 'tokens') arrivals[i]?.push(performance.now());
    }
  });
  while (arrivals.length < streams || arrivals.some((times) => times.length < 8)) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const begin = performance.now();
  const tokens = Array.from({ length: promptTokens }, (_, i) => 100 + ((i * 37 + seed * 101) % 40_000));
  const long = await answer(engine, { ...chatRequest(engine, 'x', 1), promptTokens: tokens });
  const end = begin + (long.finish.timing.firstTokenMs ?? 0);
  stop.abort();
  await Promise.all(running);
  const gaps = arrivals.flatMap((times) =>
    times.slice(1).flatMap((time, i) => (time > begin && (times[i] ?? 0) < end ? [time - (times[i] ?? 0)] : [])),
  );
  return { gaps, firstTokenMs: long.finish.timing.firstTokenMs ?? 0 };
}

const UNBOUNDED = 1e9;
const variants = [
  { name: 'no bound', opened: await open(UNBOUNDED), samples: [] as Sample[] },
  { name: `${flags['max-step-ms']} ms`, opened: await open(Number(flags['max-step-ms'])), samples: [] as Sample[] },
];
for (const { opened } of variants) await opened.warmUp();
for (let repeat = 0; repeat < Number(flags.repeats); repeat++) {
  for (const variant of repeat % 2 === 0 ? variants : variants.toReversed()) {
    variant.samples.push(await measure(variant.opened, repeat));
  }
}

const rows = variants.map(({ name, samples }) => ({
  variant: name,
  p50GapMs: median(samples.map(({ gaps }) => quantile(gaps, 0.5))),
  p99GapMs: median(samples.map(({ gaps }) => quantile(gaps, 0.99))),
  largestGapMs: median(samples.map(({ gaps }) => Math.max(...gaps))),
  firstTokenMs: median(samples.map(({ firstTokenMs }) => firstTokenMs)),
}));
const pairs = variants[0]?.samples.map((before, i) => {
  const after = variants[1]?.samples[i] as Sample;
  return {
    p99: quantile(after.gaps, 0.99) / quantile(before.gaps, 0.99),
    firstToken: after.firstTokenMs / before.firstTokenMs,
  };
});
const ratios = {
  p99Gap: median((pairs ?? []).map(({ p99 }) => p99)),
  firstToken: median((pairs ?? []).map(({ firstToken }) => firstToken)),
};
console.log(
  table(
    ['step', 'p50 gap ms', 'p99 gap ms', 'largest ms', 'first token ms'],
    rows.map((row) => [row.variant, row.p50GapMs, row.p99GapMs, row.largestGapMs, row.firstTokenMs]),
  ),
);
console.log(`\nratios: p99 gap ${ratios.p99Gap.toFixed(2)}, first token of the long prompt ${ratios.firstToken.toFixed(2)}`);
const version = variants[0]?.opened.summary.runtimeVersion ?? '';
for (const { opened } of variants) await opened.engine[Symbol.asyncDispose]();
const result = { ...provenance(version), ...flags, streams, promptTokens, rows, ratios };
if (flags.out !== undefined) writeFileSync(flags.out, `${JSON.stringify(result, null, 2)}\n`);
