import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runLoad } from '../../../src/cli/load.ts';
import { loadCommand } from '../../../src/cli/load-options.ts';
import { EXIT } from '../../../src/load/load-test.ts';
import { TemporaryFolder } from '../../support/load-test-target.ts';
import { runCommand } from './run-command.ts';

const temporary = new TemporaryFolder();
let script = '';

beforeAll(() => {
  script = join(temporary.path, 'script.ts');
  writeFileSync(
    script,
    `import { Trend } from 'k6/metrics';
     const given = new Trend('given');
     export const options = { iterations: 5, thresholds: { given: ['max<10'], 'given{team:a}': ['min==2'] } };
     export default function () { given.add(Number(__ENV.VALUE)); }`,
  );
});
afterAll(() => {
  process.exitCode = 0;
  return temporary[Symbol.asyncDispose]();
});

const run = (...words: readonly string[]) => runCommand(loadCommand().action(runLoad), ...words);

describe('load', () => {
  it('runs a script with variables, tags and iterations of its own, and exports the summary', async () => {
    const file = join(temporary.path, 'out/summary.json');
    const printed = await run(script, '-e', 'VALUE=2', '--tag', 'team=a', '-i', '3', '--summary-export', file);
    expect(process.exitCode).toBe(EXIT.ok);
    expect(printed).toContain("✓ 'max<10' max=2");
    const { metrics } = JSON.parse(readFileSync(file, 'utf8')) as { metrics: Record<string, Record<string, unknown>> };
    expect(metrics['iterations']).toMatchObject({ count: 3 });
    expect(metrics['given{team:a}']).toMatchObject({ min: 2, thresholds: { 'min==2': false } });
  });

  it('ends with 99 when a threshold is crossed', async () => {
    expect(await run(script, '-e', 'VALUE=12')).toContain("✗ 'max<10' max=12");
    expect(process.exitCode).toBe(EXIT.thresholdsCrossed);
  });

  it('tells the script where its figures come from', async () => {
    const telling = join(temporary.path, 'telling.ts');
    writeFileSync(
      telling,
      'export default function () {} export function handleSummary() { return { stdout: __ENV.PROVENANCE }; }',
    );
    expect(JSON.parse(await run(telling))).toMatchObject({
      node: process.version,
      command: expect.stringContaining('blockdraft'),
      cpu: expect.stringMatching(/\w/),
    });
  });

  it('ends with 104 for what it cannot run', async () => {
    await run('no-such-script');
    expect(process.exitCode).toBe(EXIT.invalidConfig);
  });
});
