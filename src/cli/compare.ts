/** `blockdraft compare`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compare } from '../validate/compare/compare.ts';
import { comparisonHtml, comparisonText } from '../validate/compare/comparison-report.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import { chosenWeights } from './chosen-weights.ts';
import type { CompareCommandOptions } from './compare-options.ts';
import { formatBytes } from './format.ts';
import { runInterruptibly } from './run-interruptibly.ts';
import { chosenDevice } from './validate-shared-options.ts';

const WORSE = 1;
const INTERRUPTED = 130;

export async function runCompare(drafters: readonly string[], options: CompareCommandOptions): Promise<void> {
  await runInterruptibly(options.progress, async (signal, show) => {
    const comparison = await compare({
      target: options.target,
      drafters,
      prompts: readPrompts(options.prompts, { limit: options.limit ?? null, seed: options.seed }),
      promptsFile: options.prompts,
      weights: await chosenWeights(options),
      device: chosenDevice(options),
      threads: options.threads,
      maxContext: options.maxContext ?? null,
      finalTap: options.finalTap,
      allowUnclaimed: options.allowUnclaimed,
      templateVariables: options.chatTemplateKwargs,
      cacheDir: options.cacheDir ?? null,
      concurrency: options.concurrency,
      maxTokens: options.maxTokens,
      temperature: options.temperature,
      seed: options.seed,
      draftTokens: options.draftTokens ?? null,
      margin: options.margin,
      signal,
      onProgress: (what, done, total) => show(`Preparing ${what}`, formatBytes, done, total),
      onAnswer: (done, total) => show('Drafting behind every token', String, done, total),
    });
    if (options.out !== undefined) {
      mkdirSync(options.out, { recursive: true });
      writeFileSync(join(options.out, 'comparison.json'), `${JSON.stringify(comparison, null, 2)}\n`);
      writeFileSync(join(options.out, 'comparison.html'), comparisonHtml(comparison));
    }
    process.stdout.write(options.json ? `${JSON.stringify(comparison, null, 2)}\n` : comparisonText(comparison));
    if (!comparison.complete) return INTERRUPTED;
    return comparison.pairs.some(({ verdict }) => verdict === 'worse') ? WORSE : 0;
  });
}
