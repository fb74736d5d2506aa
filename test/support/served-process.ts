/** The real command line in a process of its own, on the small trained pair. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { until, within } from './labelled-timeout.ts';
import { TESTBED_DRAFTER, TESTBED_TARGET } from './testbed-engine.ts';

const BIN = resolve(import.meta.dirname, '../../bin/blockdraft.js');
const START_MS = 60_000;

export class ServedProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | NodeJS.Signals>;
  #output = '';

  /** Loads its models when it returns. */
  constructor(cacheDir: string, args: readonly string[] = []) {
    const models = ['--target', TESTBED_TARGET, '--drafter', `dflash=${TESTBED_DRAFTER}`, '--drafter', 'ngram'];
    this.#child = spawn(process.execPath, [BIN, 'serve', ...models, '--cache-dir', cacheDir, '--port', '0', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#exit = once(this.#child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
    const read = (data: Buffer) => {
      this.#output += data.toString();
    };
    this.#child.stdout!.on('data', read);
    this.#child.stderr!.on('data', read);
  }

  /** Ready when it returns. */
  static async start(cacheDir: string, args: readonly string[] = []): Promise<ServedProcess> {
    const server = new ServedProcess(cacheDir, args);
    const ended = server.#exit.then((code) => {
      throw new Error(`the server ended with ${code}: ${server.output}`);
    });
    await Promise.race([until('the server starts', () => server.#url() !== null, START_MS), ended]);
    return server;
  }

  get url(): string {
    const url = this.#url();
    if (url === null) throw new Error('the server is not ready');
    return url;
  }

  #url(): string | null {
    const found = /listening +(http:\S+)|"url":"(http:[^"]+)"/.exec(this.#output);
    return found?.[1] ?? found?.[2] ?? null;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** What it has printed so far. */
  get output(): string {
    return this.#output;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Its exit code, or the signal that ended it. */
  exit(ms?: number): Promise<number | NodeJS.Signals> {
    return within('the server ends', this.#exit, ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }
}
