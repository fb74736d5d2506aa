/** One scenario, from its start time to the end of its last iteration. */
import type { ScenarioHost, ScenarioVu } from './executors/executor.ts';
import { type ScenarioPlan, scenarioPlan } from './executors/scenario-plan.ts';
import { wait } from './executors/wait.ts';
import type { Scenario } from './options.ts';
import type { JobOutcome, VirtualUser } from './virtual-user.ts';
import type { ScenarioFacts } from './vu/protocol.ts';
import type { VuPool } from './vu-pool.ts';

export interface ScenarioRunOptions {
  readonly name: string;
  readonly scenario: Scenario;
  readonly pool: VuPool;
  /** What `setup` returned. */
  readonly data: unknown;
  /** Aborted: everything ends now. */
  readonly signal: AbortSignal;
  readonly onEnd: (outcome: JobOutcome) => void;
  readonly onDrop: (scenario: ScenarioFacts, count: number) => void;
  readonly onFailure: (error: unknown) => void;
}

export async function runScenario(options: ScenarioRunOptions): Promise<void> {
  const { scenario, signal } = options;
  await wait(scenario.startTime, signal);
  if (signal.aborted) return;
  await new ScenarioRun(options, scenarioPlan(scenario)).run();
}

class ScenarioRun implements ScenarioHost {
  readonly #options: ScenarioRunOptions;
  readonly #plan: ScenarioPlan;
  readonly #facts: ScenarioFacts;
  readonly #stop = new AbortController();
  readonly #loans = new Set<Loan>();
  readonly #iterationsByUser = new Map<VirtualUser, number>();
  #iterations = 0;
  /** Users that it has, or that are being made ready for it. */
  #vus: number;

  constructor(options: ScenarioRunOptions, plan: ScenarioPlan) {
    this.#options = options;
    this.#plan = plan;
    this.#vus = plan.vus;
    const { executor, env, tags } = options.scenario;
    this.#facts = {
      name: options.name,
      executor,
      startTime: Date.now(),
      durationMs: plan.durationMs,
      iterations: plan.iterations,
      env,
      tags,
    };
  }

  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  async run(): Promise<void> {
    const { signal, scenario } = this.#options;
    const interruptAll = () => {
      this.#stop.abort();
      for (const loan of this.#loans) void loan.interrupt();
    };
    const ends = setTimeout(() => this.#stop.abort(), this.#plan.durationMs);
    const interrupts = setTimeout(interruptAll, this.#plan.durationMs + scenario.gracefulStop);
    signal.addEventListener('abort', interruptAll);
    try {
      await this.#plan.execute(this);
    } finally {
      clearTimeout(ends);
      clearTimeout(interrupts);
      signal.removeEventListener('abort', interruptAll);
    }
  }

  async borrow(): Promise<ScenarioVu> {
    return this.#loan(await this.#options.pool.borrow());
  }

  tryBorrow(): ScenarioVu | null {
    if (this.#loans.size < this.#vus) {
      const user = this.#options.pool.tryBorrow();
      if (user !== null) return this.#loan(user);
    }
    if (this.#vus < this.#plan.maxVus) {
      this.#vus += 1;
      this.#options.pool.grow().catch(this.#options.onFailure);
    }
    return null;
  }

  drop(count = 1): void {
    this.#options.onDrop(this.#facts, count);
  }

  #loan(user: VirtualUser): Loan {
    const loan = new Loan(
      user,
      () => this.#iterate(user),
      () => {
        this.#loans.delete(loan);
        this.#options.pool.giveBack(user);
      },
    );
    this.#loans.add(loan);
    if (this.stopping.aborted && this.#options.signal.aborted) void loan.interrupt();
    return loan;
  }

  async #iterate(user: VirtualUser): Promise<void> {
    const ofUser = this.#iterationsByUser.get(user) ?? 0;
    this.#iterationsByUser.set(user, ofUser + 1);
    const outcome = await user.run({
      kind: 'iteration',
      function: this.#options.scenario.exec,
      data: this.#options.data,
      scenario: this.#facts,
      iterationInTest: this.#iterations++,
      iterationInScenario: ofUser,
    });
    this.#options.onEnd(outcome);
  }
}

class Loan implements ScenarioVu {
  readonly #user: VirtualUser;
  readonly iterate: () => Promise<void>;
  readonly giveBack: () => void;

  constructor(user: VirtualUser, iterate: () => Promise<void>, giveBack: () => void) {
    this.#user = user;
    this.iterate = iterate;
    this.giveBack = giveBack;
  }

  get isClosed(): boolean {
    return this.#user.isClosed;
  }

  interrupt(): Promise<void> {
    return this.#user.close();
  }
}
