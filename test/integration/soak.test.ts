/**
 * Mixed traffic at twice what the server can take, for SOAK_SECONDS (60 unless given): everybody is answered or refused
 * in order, counters agree with answers, and nothing is left behind.
 */
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, expect, it } from 'vitest';
import type { FinishEvent, FinishReason } from '../../src/core/decode-event.ts';
import type { EngineObserver } from '../../src/engine/engine.ts';
import { IoBinding } from '../../src/onnx/io-binding.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { OnnxRuntimeError } from '../../src/onnx/onnx-runtime-error.ts';
import { silentLogger } from '../../src/server/logger.ts';
import { createServerMetrics } from '../../src/server/metrics.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { startServer } from '../../src/server/start-server.ts';
import { until } from '../support/labelled-timeout.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { NanRows } from '../support/nan-rows.ts';
import { parsePrometheus, sumOf } from '../support/prometheus-text.ts';
import { type Outcome, runTraffic } from '../support/soak-traffic.ts';
import { openTestbed, testbedPrompts } from '../support/testbed-engine.ts';

const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 60);
const SEQUENCES = 4;
const WAITING = 4;
/** Runs of a graph between two that fail. */
const FAULT_EVERY = 211;
/** Steps of the target between two with NaN in them. */
const NAN_EVERY = 31;
const SAMPLE_MS = 2000;
const MEBIBYTE = 2 ** 20;
/** By which the last quarter may exceed the second. Native memory grows until every size of a step has been seen. */
const GROWTH = { heap: 10 * MEBIBYTE, native: 40 * MEBIBYTE };

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;
const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

it(`answers or refuses everybody for ${SECONDS} s, and forgets them`, { timeout: (SECONDS + 180) * 1000 }, async () => {
  const totals = new Totals();
  const recorder: EngineObserver = {
    onStart: () => undefined,
    onStep: () => undefined,
    onFinish: (_, finish) => totals.add(finish),
    onQuarantine: () => {
      totals.quarantines++;
    },
  };
  const metrics = createServerMetrics({ modelName: 'testbed', version: 'soak', load: () => engine.load() });
  const opened = await openTestbed(
    {
      cacheDir: temporary.path,
      drafterModules: [resolve(import.meta.dirname, '../support/modules/stalling.ts')],
      split: 'dflash=3,ngram=1',
      shadow: { drafters: ['ngram'], rate: 0.2 },
      draftTokens: 'auto',
      maxSequences: SEQUENCES,
      maxWaiting: WAITING,
      // Less than the module takes for a draft.
      limits: { prefixCacheBytes: 8 * MEBIBYTE, drafterTimeoutMs: 700 },
      observers: [metrics, recorder],
    },
    // The module that stalls would be put away before anybody asks for it.
    false,
  );
  const { engine } = opened;
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    status: () => ({ state: 'ready', engine }),
    metrics,
    logger: silentLogger,
    version: 'soak',
    config: DEFAULT_SERVER_CONFIG,
  });
  const nans = new NanRows(opened.target, NAN_EVERY);
  const run = IoBinding.prototype.run;
  let runs = 0;
  IoBinding.prototype.run = async function (signal) {
    if (++runs % FAULT_EVERY === 0) throw new OnnxRuntimeError('FAIL', 'a kernel failed');
    return run.call(this, signal);
  };

  const outcomes = new Map<string, number>();
  const unexpected: string[] = [];
  let answeredChoices = 0;
  let answeredTokens = 0;
  const count = (what: string) => outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
  const onOutcome = (outcome: Outcome) => {
    count(outcome.kind === 'error' ? outcome.code : outcome.kind);
    if (outcome.kind === 'unexpected') unexpected.push(outcome.what);
    if (outcome.kind !== 'answered') return;
    answeredChoices += outcome.choices;
    answeredTokens += outcome.completionTokens;
  };
  const memory: NodeJS.MemoryUsage[] = [];
  const sampling = setInterval(() => {
    collectGarbage();
    memory.push(process.memoryUsage());
  }, SAMPLE_MS);
  try {
    await runTraffic({
      url: server.url,
      prompts: testbedPrompts(),
      drafters: opened.drafters.map(({ name }) => name),
      clients: 2 * (SEQUENCES + WAITING),
      endsAt: performance.now() + SECONDS * 1000,
      seed: 1,
      onOutcome,
    });
    await until('nothing runs any more', () => engine.load().running + engine.load().waiting === 0);
  } finally {
    clearInterval(sampling);
    IoBinding.prototype.run = run;
    nans[Symbol.dispose]();
  }
  const samples = parsePrometheus(await metrics.render());
  await server.close();
  const load = engine.load();
  await engine[Symbol.asyncDispose]();

  // Everybody got what they could get.
  expect(unexpected).toEqual([]);
  const allowed = [
    'answered',
    'cancelled',
    'overloaded',
    'invalid_value',
    'unknown_parameter',
    'model_not_found',
    'internal_error',
  ];
  expect([...outcomes.keys()].filter((what) => ![...allowed, ...FAILURES].includes(what))).toEqual([]);
  const told = JSON.stringify(Object.fromEntries(outcomes));
  for (const what of allowed) expect(outcomes.get(what) ?? 0, `${what} of ${told}`).toBeGreaterThan(0);

  // Counters, observers and clients agree.
  const counted = (name: string, labels = {}) => sumOf(samples, `blockdraft:${name}`, labels);
  expect(counted('request_success_total')).toBe(totals.ends('stop', 'length', 'aborted', 'error'));
  for (const reason of ['stop', 'length', 'error'] as const) {
    expect(counted('request_success_total', { finished_reason: reason }), reason).toBe(totals.ends(reason));
  }
  // An answer may have ended whose reader had left or whose sibling failed.
  const unread = totals.ends('stop', 'length') - answeredChoices;
  expect(unread).toBeGreaterThanOrEqual(0);
  expect(unread).toBeLessThanOrEqual(2 * countOf(outcomes, NOT_ANSWERED));
  expect(totals.wholeTokens).toBeGreaterThanOrEqual(answeredTokens);
  expect(counted('generation_tokens_total')).toBe(totals.tokens);
  expect(counted('spec_decode_num_drafts_total')).toBe(totals.drafts);
  expect(counted('spec_decode_num_draft_tokens_total')).toBe(totals.drafted);
  expect(counted('spec_decode_num_accepted_tokens_total')).toBe(totals.accepted);
  expect(counted('prefix_cache_hits_total')).toBe(totals.cached);
  for (const total of [totals.accepted, totals.cached, totals.quarantines]) expect(total).toBeGreaterThan(0);
  for (const code of [...allowed, ...FAILURES].filter((what) => what !== 'answered' && what !== 'cancelled')) {
    const told = outcomes.get(code) ?? 0;
    // Who has left does not see the error that was counted.
    expect(counted('request_errors_total', { code }), code).toBeGreaterThanOrEqual(told);
    expect(counted('request_errors_total', { code }) - told, code).toBeLessThanOrEqual(outcomes.get('cancelled')!);
  }

  // A NaN was the end of those whose token it would have chosen, and of nobody else.
  expect(nans.wrong).toEqual([]);
  expect(nans.survivors).toBe(0);
  expect(nans.ended).toBeGreaterThan(0);
  expect(totals.ends('error')).toBe(nans.ended + nans.otherFailures);
  expect(counted('request_errors_total', { code: 'internal_error' })).toBeLessThanOrEqual(totals.ends('error'));

  // Nothing is left.
  expect(load).toEqual({ running: 0, waiting: 0, cacheUsage: 0 });
  expect(liveObjects()).toEqual({});
  const quarter = Math.floor(memory.length / 4);
  const [second, last] = [memory.slice(quarter, 2 * quarter), memory.slice(3 * quarter)].map((samples) => ({
    heap: median(samples.map(({ heapUsed }) => heapUsed)),
    native: median(samples.map(({ rss, heapTotal }) => rss - heapTotal)),
  })) as [Memory, Memory];
  for (const kind of ['heap', 'native'] as const) expect(last[kind] - second[kind], kind).toBeLessThan(GROWTH[kind]);
  process.stdout.write(
    `${SECONDS} s: ${JSON.stringify(Object.fromEntries(outcomes))}; memory from the second to the last quarter: ` +
      `heap ${mebibytes(second.heap)} → ${mebibytes(last.heap)}, native ${mebibytes(second.native)} → ${mebibytes(last.native)}; ` +
      `drafter failures ${counted('spec_decode_rounds_without_draft_total', { reason: 'drafter-failed' })}; ` +
      `NaN: ${nans.ended} requests ended, ${nans.passedOver} rows passed over\n`,
  );
});

const FAILURES = ['context_length_exceeded', 'invalid_request'];
const NOT_ANSWERED = ['cancelled', 'overloaded', 'internal_error'];

function countOf(outcomes: ReadonlyMap<string, number>, kinds: readonly string[]): number {
  return kinds.reduce((total, kind) => total + (outcomes.get(kind) ?? 0), 0);
}

interface Memory {
  readonly heap: number;
  readonly native: number;
}

/** Sums over all ends, so that the test itself does not grow. */
class Totals {
  readonly #ends = new Map<FinishReason, number>();
  tokens = 0;
  wholeTokens = 0;
  drafts = 0;
  drafted = 0;
  accepted = 0;
  cached = 0;
  quarantines = 0;

  add({ reason, completionTokens, cachedTokens, speculation }: FinishEvent): void {
    this.#ends.set(reason, (this.#ends.get(reason) ?? 0) + 1);
    this.tokens += completionTokens;
    if (reason === 'stop' || reason === 'length') this.wholeTokens += completionTokens;
    this.cached += cachedTokens;
    for (const { drafted, accepted } of speculation.rounds) {
      if (drafted > 0) this.drafts++;
      this.drafted += drafted;
      this.accepted += accepted;
    }
  }

  ends(...reasons: readonly FinishReason[]): number {
    return reasons.reduce((sum, reason) => sum + (this.#ends.get(reason) ?? 0), 0);
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / MEBIBYTE)} MiB`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
