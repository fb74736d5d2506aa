/** `blockdraft export-hard`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { readAnswers } from '../validate/measure/answer-store.ts';
import { hardExamples } from '../validate/trace/hard-examples.ts';
import type { ExportHardOptions } from './export-hard-options.ts';

/** @throws AppError `invalid_config` when nothing was measured there, or nobody wants the examples */
export function runExportHard(validation: string, { out, json, ...options }: ExportHardOptions): void {
  if (out === undefined && !json) {
    throw new AppError('invalid_config', 'Expected --out or --json, got neither; say where the examples go');
  }
  const answers = readAnswers(join(validation, 'answers.jsonl'));
  const examples = hardExamples(answers, {
    maxAccepted: options.maxAccepted,
    minTargetProbability: options.minTargetProbability,
    limit: options.limit ?? null,
  });
  if (out !== undefined) {
    mkdirSync(dirname(resolve(out)), { recursive: true });
    writeFileSync(out, examples.map((example) => `${JSON.stringify(example)}\n`).join(''));
  }
  const tokens = examples.reduce((sum, { input_ids }) => sum + input_ids.length, 0);
  process.stdout.write(json ? `${JSON.stringify(examples)}\n` : `${out}: ${examples.length} prefixes of ${tokens} tokens\n`);
}
