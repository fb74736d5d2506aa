/**
 * What decoding costs and what speculation gains, in this process: no HTTP but for the last table.
 *
 *   npm run bench -- [--tokens 96] [--repeats 3] [--target folder] [--drafter folder]
 *
 * Variants take turns prompt by prompt, so that a machine that slows down slows all of them; ratios are of medians.
 * The last line of standard output is one JSON document.
 */
import { parseArgs } from 'node:util';
import { DEFAULT_TARGET } from '../src/cli/serve-options.ts';
import type { StepReport } from '../src/engine/engine.ts';
import { type OpenEngineOptions, type OpenedEngine, openEngine } from '../src/engine/open-engine.ts';
import { IoBinding } from '../src/onnx/io-binding.ts';
import { answer, chatRequest } from './lib/generate.ts';
import { httpOverhead } from './lib/http-overhead.ts';
import { provenance } from './lib/provenance.ts';
import { mean, median } from './lib/statistics.ts';
import { stepCosts } from './lib/step-costs.ts';
import { table } from './lib/table.ts';
import prompts from './prompts.json' with { type: 'json' };

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '96' },
    repeats: { type: 'string', default: '3' },
    threads: { type: 'string', default: '2' },
    weights: { type: 'string', default: 'int8' },
    target: { type: 'string', default: DEFAULT_TARGET },
    drafter: { type: 'string', default: 'dflash' },
    kinds: { type: 'string', default: Object.keys(prompts).join() },
    prompts: { type: 'string', default: '6' },
  },
});
const maxTokens = Number(flags.tokens);
const repeats = Number(flags.repeats);

/** Time spent inside ONNX Runtime's own runs, the hand-over to its thread included. */
let bareMs = 0;
const run = IoBinding.prototype.run;
IoBinding.prototype.run = async function (signal) {
  const started = performance.now();
  await run.call(this, signal);
  bareMs += performance.now() - started;
};

async function open(drafter: string, steps: StepReport[], draftTokens: number | 'auto'): Promise<OpenedEngine> {
  const options: OpenEngineOptions = {
    target: flags.target,
    drafters: [drafter],
    drafterModules: [],
    draftTokens,
    weights: flags.weights as OpenEngineOptions['weights'],
    device: { kind: 'cpu' },
    threads: Number(flags.threads),
    maxContext: null,
    maxSequences: 8,
    maxRows: 256,
    maxWaiting: 64,
    servedModelName: null,
    cacheDir: null,
    observers: [{ onStart: () => undefined, onStep: (step) => steps.push(step), onFinish: () => undefined }],
  };
  return openEngine(options);
}

const steps: StepReport[] = [];
const plain = await open('none', steps, 'auto');
const auto = await open(flags.drafter, steps, 'auto');
const longest = auto.drafters[0]?.draftTokens ?? 0;
const dflash = await open(flags.drafter, steps, longest);
const ngram = await open('ngram', steps, 'auto');

console.log(`${dflash.summary.target} · ${flags.weights} · ${dflash.summary.drafters[0]?.name} · ${flags.threads} threads\n`);

// --- what a step costs, by rows, and a draft, by length
const costs = await stepCosts(plain, dflash, () => bareMs);
console.log('One step of the target, and one draft\n');
console.log(
  table(
    ['rows', 'step ms', 'bare run ms', 'step / bare', 'c(rows) / c(1)', 'draft ms', 'draft / c(1)'],
    costs.map((cost) => [
      String(cost.rows),
      cost.stepMs,
      cost.bareMs,
      cost.stepMs / cost.bareMs,
      cost.stepMs / (costs[0]?.stepMs ?? 1),
      cost.draftMs ?? '',
      cost.draftMs === null ? '' : cost.draftMs / (costs[0]?.stepMs ?? 1),
    ]),
  ),
);

// --- what speculation gains, by kind of prompt
const variants = [
  { name: 'plain', engine: plain.engine, draftTokens: 0 },
  ...Array.from({ length: longest }, (_, i) => ({ name: `dflash ${i + 1}`, engine: dflash.engine, draftTokens: i + 1 })),
  { name: 'dflash auto', engine: auto.engine, draftTokens: null },
  { name: 'ngram auto', engine: ngram.engine, draftTokens: null },
];
interface Sample {
  readonly tokensPerSecond: number;
  readonly tokens: string;
  readonly decodeTokens: number;
  readonly rounds: number;
  readonly draftMs: number;
  readonly verifyMs: number;
}
const results: Record<string, unknown>[] = [];
let differing = 0;
for (const [kind, list] of Object.entries(prompts)) {
  if (!flags.kinds.split(',').includes(kind)) continue;
  const samples = new Map<string, Sample[]>(variants.map(({ name }) => [name, []]));
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const prompt of list.slice(0, Number(flags.prompts))) {
      const order = repeat % 2 === 0 ? variants : [...variants].reverse();
      let expected: string | null = null;
      for (const { name, engine, draftTokens } of order) {
        steps.length = 0;
        const result = await answer(
          engine,
          chatRequest(engine, prompt, maxTokens, { draftTokens, ...(draftTokens === 0 ? { drafter: 'none' } : {}) }),
        );
        const rounds = steps.filter((step) => step.rounds.length > 0);
        const tokens = result.tokens.join();
        expected ??= tokens;
        if (tokens !== expected) differing++;
        samples.get(name)?.push({
          tokensPerSecond: ((result.tokens.length - 1) / result.decodeMs) * 1000,
          tokens,
          decodeTokens: result.tokens.length - 1,
          rounds: rounds.length,
          draftMs: mean(rounds.map((step) => step.draftMs)),
          verifyMs: mean(rounds.map((step) => step.durationMs)),
        });
      }
    }
  }
  for (const { name } of variants) {
    const own = samples.get(name) ?? [];
    const base = samples.get('plain') ?? [];
    const sum = (pick: (sample: Sample) => number, list = own) => list.reduce((total, sample) => total + pick(sample), 0);
    const acceptanceLength = sum((sample) => sample.decodeTokens) / sum((sample) => sample.rounds);
    const roundMs = sum((sample) => sample.rounds * (sample.draftMs + sample.verifyMs)) / sum((sample) => sample.rounds);
    const plainMs = sum((s) => s.rounds * (s.draftMs + s.verifyMs), base) / sum((s) => s.rounds, base);
    const speedUp = median(own.map((sample, i) => sample.tokensPerSecond / (base[i]?.tokensPerSecond ?? Number.NaN)));
    const predicted = (acceptanceLength * plainMs) / roundMs;
    results.push({
      kind,
      variant: name,
      acceptanceLength,
      tokensPerSecond: median(own.map((s) => s.tokensPerSecond)),
      speedUp,
      predicted,
    });
  }
}
console.log(`\nDecoding, ${maxTokens} tokens, greedy; speed-up over plain; predicted = AL · c(1) / (draft + c(B))\n`);
console.log(
  table(
    ['kind', 'variant', 'acceptance length', 'tokens/s', 'speed-up', 'predicted', 'of predicted'],
    results.map((row) => [
      String(row['kind']),
      String(row['variant']),
      Number(row['acceptanceLength']),
      Number(row['tokensPerSecond']),
      Number(row['speedUp']),
      Number(row['predicted']),
      Number(row['speedUp']) / Number(row['predicted']),
    ]),
  ),
);
console.log(
  differing === 0 ? '\nAll variants gave the same tokens.' : `\n${differing} answers DIFFER from the first variant's.`,
);

// --- what HTTP adds
const http = await httpOverhead(dflash.engine, prompts.explain.slice(0, 4), maxTokens, repeats);
console.log(
  `\nHTTP streaming: ${http.http.toFixed(1)} tokens/s, in process ${http.inProcess.toFixed(1)}: ratio ${http.ratio.toFixed(3)}`,
);

for (const { engine } of [dflash, auto, ngram, plain]) await engine[Symbol.asyncDispose]();
console.log(
  JSON.stringify({
    ...provenance(dflash.summary.runtimeVersion),
    target: dflash.summary.target,
    drafter: dflash.summary.drafters[0]?.name,
    weights: flags.weights,
    threads: Number(flags.threads),
    costs,
    decoding: results,
    differing,
    http,
  }),
);
if (differing > 0) process.exitCode = 1;
