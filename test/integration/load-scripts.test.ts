/** The load tests of this project, by the runner, against the small trained pair and drafters that are broken. */
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT, type LoadTestResult, runLoadTest } from '../../src/load/load-test.ts';
import type { SummaryData } from '../../src/load/summary/summary-data.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { ServedProcess } from '../support/served-process.ts';

const SCRIPTS = resolve(import.meta.dirname, '../../load-tests');
const TESTBED = resolve(import.meta.dirname, '../golden/fixtures/testbed');
const LIAR = resolve(import.meta.dirname, '../support/modules/told-liar.ts');

const temporary = new TemporaryFolder();
let server: ServedProcess;

beforeAll(async () => {
  const broken = ['--drafter', `broken=${TESTBED}/bad/wrong-mask-token`, '--drafter-module', `liar=${LIAR}`];
  server = await ServedProcess.start(temporary.path, [...broken, '--weights', 'f32', '--threads', '1', '--draft-tokens', '7']);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
});

async function load(script: string, env: Readonly<Record<string, string>> = {}): Promise<LoadTestResult> {
  return runLoadTest({
    script: resolve(SCRIPTS, `${script}.ts`),
    env: {
      BASE_URL: server.url,
      PROMPTS: resolve(TESTBED, 'prompts.jsonl'),
      MAX_TOKENS: '48',
      DRAFTER: 'dflash',
      // Times are of a machine that does other things too; what is held to a goal here is acceptance.
      SLO_TTFT_MS: '20000',
      SLO_TPOT_MS: '5000',
      SLO_ITL_MS: '20000',
      ...env,
    },
    signal: new AbortController().signal,
    onLog: () => undefined,
  });
}

function crossed({ metrics }: SummaryData): string[] {
  return Object.entries(metrics).flatMap(([name, { thresholds = {} }]) =>
    Object.entries(thresholds).flatMap(([source, { ok }]) => (ok ? [] : [`${name}: ${source}`])),
  );
}

describe('acceptance is held to thresholds', () => {
  it('which a good drafter keeps', async () => {
    const { exitCode, data } = await load('smoke', { DRAFTER: 'dflash', MIN_ACCEPTANCE_LENGTH: '3' });
    expect(crossed(data)).toEqual([]);
    expect(exitCode).toBe(EXIT.ok);
    expect(data.metrics['spec_accepted_at']?.values['rate']).toBeCloseTo(
      data.metrics['spec_acceptance_rate']!.values['rate']!,
      10,
    );
  });

  it.each([
    ['lies', 'liar', 'spec_acceptance_length: avg>1.2', '1.2'],
    ['has the wrong mask token in its config', 'broken', 'spec_acceptance_length: avg>3', '3'],
  ])('which one that %s does not keep, though all its answers are right and in time', async (_, drafter, expected, floor) => {
    const { exitCode, data } = await load('smoke', { DRAFTER: drafter, MIN_ACCEPTANCE_LENGTH: floor });
    expect(exitCode).toBe(EXIT.thresholdsCrossed);
    expect(crossed(data)).toContain(expected);
    expect(crossed(data).filter((threshold) => !threshold.startsWith('spec_'))).toEqual([]);
    expect(data.metrics['checks']?.values['rate']).toBe(1);
  });

  it('and of which plain decoding has none', async () => {
    const { exitCode, data } = await load('smoke', { DRAFTER: 'none' });
    expect(exitCode).toBe(EXIT.ok);
    expect(data.metrics['spec_acceptance_length']).toBeUndefined();
    expect(data.metrics['spec_disabled_steps']?.values['count']).toBeGreaterThan(0);
  });
});

describe('clients', () => {
  it('that leave take nothing from those that stay, and leave nothing behind', async () => {
    const { exitCode, data } = await load('cancel', { ITERATIONS: '4', LONG_TOKENS: '200' });
    expect(crossed(data)).toEqual([]);
    expect(exitCode).toBe(EXIT.ok);
    expect(data.metrics['llm_ttft{who:stayer}']?.values).toBeDefined();
    const names = data.root_group.checks.map(({ name }) => name);
    expect(names).toContain('nothing runs or waits when all have left');
    expect(names).toContain('who stays is answered');
  });

  it('on a WebSocket see each delivery, and the text of HTTP', async () => {
    const { exitCode, data } = await load('websocket', { ITERATIONS: '2' });
    expect(crossed(data)).toEqual([]);
    expect(exitCode).toBe(EXIT.ok);
    expect(data.metrics['llm_itl']?.values['p(95)']).toBeGreaterThan(0);
    expect(data.metrics['llm_itl_per_token']?.values['avg']).toBeLessThan(data.metrics['llm_itl']?.values['avg'] ?? 0);
    expect(data.root_group.checks.find(({ name }) => name === 'the text is that of HTTP')).toMatchObject({
      passes: 4,
      fails: 0,
    });
  });
});

describe('loads', () => {
  it.each([
    ['steady', { RATE: '4', DURATION: '2s', DRAFTER: 'dflash' }],
    ['burst', { BURST: '12', RATE: '2', CALM_SECONDS: '1', RECOVERY_SECONDS: '3' }],
    // Behind texts that the small pair was not trained on its first tokens are accepted less often.
    ['mixed', { DURATION: '3s', LONG_CHARACTERS: '300', VUS: '2', MIN_FIRST_ACCEPTANCE: '0.05' }],
    ['soak', { DURATION: '4s', RATE: '4' }],
  ])('of %s meet their goals', async (script, env) => {
    const { exitCode, data } = await load(script, env);
    expect(crossed(data)).toEqual([]);
    expect(exitCode).toBe(EXIT.ok);
  });

  it('that grow are told level by level, with the knee', async () => {
    const { exitCode, outputs } = await load('ramp', { RATES: '2,4', LEVEL_SECONDS: '2', PAUSE_SECONDS: '1' });
    expect(exitCode).toBe(EXIT.ok);
    expect(outputs['stdout']).toMatch(/2\/s .* 100 %.*\n.*4\/s .* 100 %.*← knee/);
  });

  it('are swept with drafters and draft lengths', async () => {
    const cells = { CONCURRENCY: '2', DRAFTERS: 'dflash,none', DRAFT_TOKENS: '2,7', LEVEL_SECONDS: '1', GRACE_SECONDS: '2' };
    const { exitCode, data, outputs } = await load('sweep', cells);
    expect(exitCode).toBe(EXIT.ok);
    const length = (variant: string) => data.metrics[`spec_acceptance_length{load:2,variant:${variant}}`]?.values['avg'] ?? 0;
    expect(length('dflash@2')).toBeGreaterThan(2);
    expect(length('dflash@2')).toBeLessThanOrEqual(3);
    expect(length('dflash@7')).toBeGreaterThan(length('dflash@2'));
    expect(outputs['stdout']?.split('\n').filter((line) => / dflash@| none /.test(line))).toHaveLength(3);
  });
});
