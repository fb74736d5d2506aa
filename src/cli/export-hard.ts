/** `blockdraft export-hard`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readAnswers } from '../validate/measure/answer-store.ts';
import { hardExamples } from '../validate/trace/hard-examples.ts';
import type { ExportHardOptions } from './export-hard-options.ts';

export function runExportHard(validation: string, options: ExportHardOptions): void {
  const answers = readAnswers(join(validation, 'answers.jsonl'));
  const examples = hardExamples(answers, {
    maxAccepted: options.maxAccepted,
    minTargetProbability: options.minTargetProbability,
    limit: options.limit ?? null,
  });
  mkdirSync(dirname(resolve(options.out)), { recursive: true });
  writeFileSync(options.out, examples.map((example) => `${JSON.stringify(example)}\n`).join(''));
  const tokens = examples.reduce((sum, { input_ids }) => sum + input_ids.length, 0);
  process.stdout.write(`${options.out}: ${examples.length} prefixes of ${tokens} tokens\n`);
}
