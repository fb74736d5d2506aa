/** A load test from its script to its exit code. */
import { setMaxListeners } from 'node:events';
import { AppError } from '../core/app-error.ts';
import { bundleScript, bundleWorker } from './bundle-script.ts';
import { scenarioPlan, vusAtOnce } from './executors/scenario-plan.ts';
import { MetricStore } from './metrics/metric-store.ts';
import { type OptionOverrides, type TestOptions, testOptions } from './options.ts';
import { runScenario } from './scenario-run.ts';
import { CheckTree } from './summary/check-tree.ts';
import { type SummaryData, summaryData } from './summary/summary-data.ts';
import { textSummary } from './summary/text-summary.ts';
import { type JobOutcome, VirtualUser, type VirtualUserOptions, type VuMessage } from './virtual-user.ts';
import type { Job, ScenarioFacts } from './vu/protocol.ts';
import { VuPool } from './vu-pool.ts';

/** As k6 documents them. */
export const EXIT = {
  ok: 0,
  thresholdsCrossed: 99,
  setupTimeout: 100,
  teardownTimeout: 101,
  invalidConfig: 104,
  interrupted: 105,
  scriptError: 107,
  scriptAborted: 108,
  markedFailed: 110,
} as const;

/** Time between two looks at thresholds that end a test. */
const LOOK_MS = 1000;

export interface LoadTestOptions {
  /** File of the script. */
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  readonly tags?: Readonly<Record<string, string>>;
  readonly overrides?: OptionOverrides;
  readonly colours?: boolean;
  /** Ends the test; what was measured is still summed up. */
  readonly signal: AbortSignal;
  readonly onLog: (line: string) => void;
  readonly onProgress?: (progress: LoadProgress) => void;
}

export interface LoadProgress {
  readonly elapsedMs: number;
  /** When all scenarios have ended at the latest. */
  readonly plannedMs: number;
  readonly iterations: number;
  readonly dropped: number;
  readonly vus: number;
}

export interface LoadTestResult {
  readonly exitCode: number;
  readonly data: SummaryData;
  /** By `stdout`, `stderr` or path: the script's own summary, or the usual one. */
  readonly outputs: Readonly<Record<string, string>>;
}

/** @throws AppError `invalid_config` for a script that cannot be run */
export async function runLoadTest(options: LoadTestOptions): Promise<LoadTestResult> {
  const [code, workerCode] = await Promise.all([bundleScript(options.script), bundleWorker()]);
  const base: VirtualUserOptions = {
    workerCode,
    code,
    filename: options.script,
    vu: 0,
    env: options.env,
    tags: options.tags ?? {},
    discardResponseBodies: false,
    shared: {},
    options: {},
    testStarted: Date.now(),
    keepConnections: true,
    onMessage: (message) => (test === null ? void early.push(message) : test.onMessage(message)),
    onDeath: (error) => test?.onDeath(error),
  };
  let test: LoadTest | null = null;
  const early: VuMessage[] = [];
  const main = await VirtualUser.open(base);
  try {
    test = new LoadTest(options, base, main, testOptions(main.info.options, options.overrides));
    for (const message of early) test.onMessage(message);
    return await test.run();
  } finally {
    await main.close();
  }
}

class LoadTest {
  readonly #given: LoadTestOptions;
  readonly #main: VirtualUser;
  readonly #options: TestOptions;
  readonly #metrics: MetricStore;
  readonly #checks = new CheckTree();
  readonly #pool: VuPool;
  readonly #stop = new AbortController();
  /** When the first scenario could start; setup does not count. */
  #begun = performance.now();
  /** What ended or spoilt the test; the first one counts. */
  #exitCode: number = EXIT.ok;
  #iterations = 0;
  #dropped = 0;

  constructor(given: LoadTestOptions, base: VirtualUserOptions, main: VirtualUser, options: TestOptions) {
    const { info } = main;
    // Every scenario waits for it.
    setMaxListeners(0, this.#stop.signal);
    this.#given = given;
    this.#main = main;
    this.#options = options;
    this.#metrics = new MetricStore(info.metrics, options.thresholds);
    for (const [name, { exec }] of Object.entries(options.scenarios)) {
      if (info.functions.includes(exec)) continue;
      const there = info.functions.join(', ') || 'none';
      throw new AppError(
        'invalid_config',
        `Expected a function ${exec} among those that the script exports, as scenario ${name} runs it, got ${there}; ` +
          'for a script without default leave out --vus, --iterations and --duration',
        { details: { param: 'exec' } },
      );
    }
    this.#pool = new VuPool((vu) =>
      VirtualUser.open({
        ...base,
        vu,
        tags: { ...options.tags, ...base.tags },
        shared: info.shared,
        options: info.options,
        discardResponseBodies: options.discardResponseBodies,
        keepConnections: !options.noConnectionReuse,
      }),
    );
  }

  async run(): Promise<LoadTestResult> {
    const interrupt = () => this.#end(EXIT.interrupted, 'interrupted');
    this.#given.signal.addEventListener('abort', interrupt);
    if (this.#given.signal.aborted) interrupt();
    let durationMs = 0;
    const looking = setInterval(() => this.#look(), LOOK_MS);
    try {
      const scenarios = Object.entries(this.#options.scenarios);
      const wanted = vusAtOnce(scenarios.map(([, scenario]) => scenario));
      await this.#pool.prepare(wanted, this.#stop.signal, () => undefined);
      const data = await this.#setup();
      this.#begun = performance.now();
      const plannedMs = Math.max(...scenarios.map(([, it]) => it.startTime + scenarioPlan(it).durationMs));
      const progress = setInterval(() => this.#report(this.#seconds() * 1000, plannedMs), LOOK_MS);
      try {
        await Promise.all(
          scenarios.map(([name, scenario]) =>
            runScenario({
              name,
              scenario,
              pool: this.#pool,
              data,
              signal: this.#stop.signal,
              onEnd: (outcome) => this.#ended(outcome),
              onDrop: (facts, count) => this.#drop(facts, count),
              onFailure: (error) => this.#end(EXIT.scriptError, String(error)),
            }),
          ),
        );
      } finally {
        clearInterval(progress);
      }
      this.#gauge();
      durationMs = this.#seconds() * 1000;
      if (this.#exitCode !== EXIT.scriptError) await this.#teardown(data);
    } finally {
      clearInterval(looking);
      this.#given.signal.removeEventListener('abort', interrupt);
      await this.#pool.close();
    }
    return this.#result(durationMs);
  }

  onMessage(message: VuMessage): void {
    switch (message.type) {
      case 'samples':
        for (const sample of message.samples) this.#metrics.record(sample);
        break;
      case 'checked':
        this.#checks.add(message.group, message.name, message.passed);
        break;
      case 'log':
        this.#log(message.level, message.text);
        break;
      case 'marked-failed':
        this.#log('error', message.message);
        this.#spoil(EXIT.markedFailed);
        break;
    }
  }

  /** What it would have measured is missing in every figure. */
  onDeath(error: Error): void {
    this.#end(EXIT.scriptError, `a virtual user has died: ${error.message}`);
  }

  async #setup(): Promise<unknown> {
    if (!this.#main.info.functions.includes('setup') || this.#stop.signal.aborted) return null;
    const { result } = await this.#once({ kind: 'setup' }, this.#options.setupTimeout, EXIT.setupTimeout);
    return typeof result === 'string' ? (JSON.parse(result) as unknown) : null;
  }

  async #teardown(data: unknown): Promise<void> {
    if (!this.#main.info.functions.includes('teardown')) return;
    await this.#once({ kind: 'teardown', data }, this.#options.teardownTimeout, EXIT.teardownTimeout);
  }

  /** A function that belongs to the whole test: if it fails, the test has. */
  async #once(job: Job, timeoutMs: number, timeoutCode: number): Promise<JobOutcome> {
    const timer = setTimeout(() => {
      this.#end(timeoutCode, `${job.kind} took longer than ${timeoutMs} ms`);
      void this.#main.close();
    }, timeoutMs);
    const outcome = await this.#main.run(job);
    clearTimeout(timer);
    if (outcome.error !== null) {
      const isAborted = outcome.error.cause === 'aborted';
      this.#end(isAborted ? EXIT.scriptAborted : EXIT.scriptError, outcome.error.message);
    }
    return outcome;
  }

  #ended({ error, interrupted }: JobOutcome): void {
    if (interrupted) return;
    this.#iterations += 1;
    if (error === null) return;
    if (error.cause === 'aborted') this.#end(EXIT.scriptAborted, error.message);
    else this.#log('error', error.message);
  }

  /** Tagged as in k6: with the scenario's name, and with none of its own tags. */
  #drop({ name }: ScenarioFacts, count: number): void {
    this.#dropped += count;
    this.#metrics.record({ metric: 'dropped_iterations', value: count, tags: { ...this.#options.tags, scenario: name } });
  }

  #look(): void {
    this.#gauge();
    const crossed = this.#metrics.aborting(this.#seconds());
    if (crossed === null) return;
    this.#end(EXIT.thresholdsCrossed, `threshold ${crossed.threshold.source} of ${crossed.metric.name} was crossed`);
  }

  #gauge(): void {
    this.#metrics.record({ metric: 'vus', value: this.#pool.active, tags: this.#options.tags });
    this.#metrics.record({ metric: 'vus_max', value: this.#pool.size, tags: this.#options.tags });
  }

  #report(elapsedMs: number, plannedMs: number): void {
    this.#given.onProgress?.({
      elapsedMs,
      plannedMs,
      iterations: this.#iterations,
      dropped: this.#dropped,
      vus: this.#pool.active,
    });
  }

  #end(code: number, reason: string): void {
    if (!this.#stop.signal.aborted) this.#log('error', `test ended: ${reason}`);
    this.#spoil(code);
    this.#stop.abort();
  }

  #spoil(code: number): void {
    if (this.#exitCode === EXIT.ok) this.#exitCode = code;
  }

  async #result(durationMs: number): Promise<LoadTestResult> {
    const data = summaryData({
      metrics: this.#metrics,
      checks: this.#checks.root,
      trendStats: this.#options.summaryTrendStats,
      durationMs,
    });
    if (this.#metrics.crossed(durationMs / 1000).length > 0) this.#spoil(EXIT.thresholdsCrossed);
    return { exitCode: this.#exitCode, data, outputs: await this.#outputs(data) };
  }

  async #outputs(data: SummaryData): Promise<Record<string, string>> {
    if (this.#main.info.functions.includes('handleSummary') && !this.#main.isClosed) {
      const { result, error } = await this.#main.run({ kind: 'summary', data });
      if (error === null) return result as Record<string, string>;
      this.#log('error', `handleSummary failed: ${error.message}`);
      this.#spoil(EXIT.scriptError);
    }
    return { stdout: textSummary(data, this.#metrics, { colours: this.#given.colours ?? false }) };
  }

  #seconds(): number {
    return (performance.now() - this.#begun) / 1000;
  }

  #log(level: string, text: string): void {
    this.#given.onLog(`${level.toUpperCase().padEnd(5)}[${String(Math.floor(this.#seconds())).padStart(4, '0')}] ${text}`);
  }
}
