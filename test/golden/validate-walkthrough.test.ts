/** Every command of the walk-through, as a new user would type it, on fewer prompts and shorter answers. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { comparisonSchema } from '../../src/validate/compare/comparison-schema.ts';
import { reportSchema } from '../../src/validate/report/report-schema.ts';
import { watchSchema } from '../../src/validate/watch/watch-schema.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { TEST_THREADS } from '../support/runtime.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');
const GUIDE = readFileSync(join(REPOSITORY, 'docs/validating-a-drafter.md'), 'utf8');
const TIMEOUT_MS = 240_000;

const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

/** What needs a server is left to the tests of its routes. */
const commands = [...GUIDE.matchAll(/```sh\n([\s\S]*?)```/g)]
  .flatMap(([, block]) =>
    block!
      .replace(/\\\n\s*/g, '')
      .trim()
      .split('\n'),
  )
  .filter((command) => !/^(curl|blockdraft serve) /.test(command));

/** The same command with small limits. */
function shortened(command: string): string {
  return command
    .replace(/--limit \d+/, '--limit 2')
    .replace(/--max-tokens \d+/, '--max-tokens 6')
    .replace(/^blockdraft validate(?!.*--(speed-prompts|watch))/, '$& --speed-prompts 1');
}

function run(command: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = `blockdraft() { '${process.execPath}' '${REPOSITORY}/bin/blockdraft.js' "$@"; }\n`;
  return new Promise((done) => {
    const child = spawn('bash', ['-c', program + command], {
      cwd: temporary.path,
      env: { ...process.env, BLOCKDRAFT: REPOSITORY, BLOCKDRAFT_THREADS: String(TEST_THREADS) },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('close', (code) => done({ code, output }));
  });
}

describe('the walk-through', () => {
  it('has commands of each kind', () => {
    const kinds = new Set(commands.map((command) => /^blockdraft ([\w-]+)/.exec(command)?.[1]));
    expect([...kinds]).toEqual(expect.arrayContaining(['validate', 'compare', 'export-hard']));
    expect(commands.some((command) => command.includes('--watch'))).toBe(true);
  });

  it.each(commands.map((command, i) => ({ command, i })))(
    'runs: $command',
    async ({ command }) => {
      const { code, output } = await run(shortened(command));
      // A gate may fail on two prompts of six tokens; that it was checked is what counts.
      expect(code, output).toBeOneOf(command.includes('--min-') ? [0, 1] : [0]);
      if (command.includes('--min-')) expect(output).toMatch(/(passed|FAILED) {2}.*minAcceptanceLength/);
    },
    TIMEOUT_MS,
  );

  it('leaves the files that the page names', () => {
    const at = (...path: string[]) => join(temporary.path, ...path);
    for (const name of [
      'report.html',
      'report.json',
      'acceptance.csv',
      'perf_results.csv',
      'eval_command.txt',
      'answers.jsonl',
    ]) {
      expect(existsSync(at('first', name)), name).toBe(true);
    }
    const json = (...path: string[]) => JSON.parse(readFileSync(at(...path), 'utf8'));
    const first = reportSchema.parse(json('first', 'report.json'));
    expect(first).toMatchObject({ complete: true, lossless: { differing: [] }, speed: { prompts: 1 } });
    expect(reportSchema.parse(json('sampled', 'report.json')).byTemperature).toHaveLength(2);
    expect(comparisonSchema.parse(json('versus', 'comparison.json')).members).toHaveLength(2);
    expect(watchSchema.parse(json('watch', 'watch.json')).points).toMatchObject([{ run: 'v5', step: 3200 }]);
    expect(readFileSync(at('hard', 'trace.jsonl'), 'utf8')).toMatch(/"outcome":/);
    expect(existsSync(at('hard', 'examples.jsonl'))).toBe(true);
  });
});
