/** Measurements of drafters that were asked for over HTTP: one at a time, the last ones kept. */
import { randomUUID } from 'node:crypto';
import { AppError } from '../../core/app-error.ts';
import { HttpError } from '../http-error.ts';
import { type JobFolders, NO_JOB_FOLDERS } from './job-folders.ts';
import type {
  ValidationKind,
  ValidationOutcome,
  ValidationProgress,
  ValidationRunner,
  ValidationTask,
} from './validation-runner.ts';

/** Results can be large. */
const MAX_JOBS = 16;

export interface ValidationJob {
  readonly id: string;
  readonly kind: ValidationKind;
  /** Names. */
  readonly drafters: readonly string[];
  readonly createdAt: Date;
  readonly endedAt: Date | null;
  readonly status: 'running' | 'succeeded' | 'failed' | 'cancelled';
  readonly progress: ValidationProgress | null;
  /** Null until it has succeeded. */
  readonly outcome: ValidationOutcome | null;
  /** Why it failed. */
  readonly error: string | null;
}

interface Running {
  readonly id: string;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
}

export class ValidationJobs {
  readonly folders: JobFolders;
  readonly #runner: ValidationRunner;
  /** Oldest first. */
  readonly #jobs = new Map<string, ValidationJob>();
  #running: Running | null = null;
  #closed = false;

  /** @param folders that jobs may read and write; default: none */
  constructor(runner: ValidationRunner, folders = NO_JOB_FOLDERS) {
    this.#runner = runner;
    this.folders = folders;
  }

  /** Newest first. */
  list(): readonly ValidationJob[] {
    return [...this.#jobs.values()].reverse();
  }

  /** @throws AppError `rate_limited` while another one runs, `unavailable` once closed */
  start(task: ValidationTask): ValidationJob {
    if (this.#closed) throw new AppError('unavailable', 'The server is shutting down');
    if (this.#running !== null) {
      throw new AppError('rate_limited', `Job ${this.#running.id} is running; wait for its end or cancel it`);
    }
    const job: ValidationJob = {
      id: `job-${randomUUID()}`,
      kind: task.kind,
      drafters: task.drafters.map(({ name }) => name),
      createdAt: new Date(),
      endedAt: null,
      status: 'running',
      progress: null,
      outcome: null,
      error: null,
    };
    this.#jobs.set(job.id, job);
    for (const id of [...this.#jobs.keys()].slice(0, -MAX_JOBS)) this.#jobs.delete(id);
    const abort = new AbortController();
    this.#running = { id: job.id, abort, ended: this.#run(job.id, task, abort.signal) };
    return job;
  }

  /** @throws HttpError 404 when it is not known, or no longer */
  get(id: string): ValidationJob {
    const job = this.#jobs.get(id);
    if (job !== undefined) return job;
    throw new HttpError(404, `Expected a job of this server, got ${id}. The last ${MAX_JOBS} are kept.`, {
      details: { param: 'id', code: 'job_not_found' },
    });
  }

  /**
   * Ends it if it runs, and waits for that.
   * @throws HttpError 404
   */
  async cancel(id: string): Promise<ValidationJob> {
    this.get(id);
    if (this.#running?.id === id) {
      const { abort, ended } = this.#running;
      abort.abort();
      await ended;
    }
    return this.get(id);
  }

  /** Ends what runs and takes no more. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#running !== null) await this.cancel(this.#running.id);
  }

  async #run(id: string, task: ValidationTask, signal: AbortSignal): Promise<void> {
    const onProgress = (progress: ValidationProgress) => this.#update(id, { progress });
    const ended = await this.#runner.run(task, onProgress, signal).then(
      (outcome) => ({ status: 'succeeded' as const, outcome }),
      (error: unknown) => ({ status: 'failed' as const, error: error instanceof Error ? error.message : String(error) }),
    );
    this.#running = null;
    this.#update(id, { ...(signal.aborted ? { status: 'cancelled' } : ended), endedAt: new Date() });
  }

  #update(id: string, change: Partial<ValidationJob>): void {
    const job = this.#jobs.get(id);
    if (job !== undefined) this.#jobs.set(id, { ...job, ...change });
  }
}
