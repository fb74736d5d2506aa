/** The real command line in a process of its own, on the small trained pair. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { within } from './labelled-timeout.ts';
import { TESTBED_DRAFTER, TESTBED_TARGET } from './testbed-engine.ts';

const BIN = resolve(import.meta.dirname, '../../bin/blockdraft.js');
const START_MS = 60_000;

export class ServedProcess implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | NodeJS.Signals>;
  readonly #output: () => string;

  private constructor(child: ChildProcess, exit: Promise<number | NodeJS.Signals>, url: string, output: () => string) {
    this.#child = child;
    this.#exit = exit;
    this.url = url;
    this.#output = output;
  }

  /** Ready when it returns. */
  static async start(cacheDir: string, args: readonly string[] = []): Promise<ServedProcess> {
    const models = ['--target', TESTBED_TARGET, '--drafter', `dflash=${TESTBED_DRAFTER}`, '--drafter', 'ngram'];
    const child = spawn(process.execPath, [BIN, 'serve', ...models, '--cache-dir', cacheDir, '--port', '0', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exit = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
    let output = '';
    const url = new Promise<string>((resolve, reject) => {
      const read = (data: Buffer) => {
        output += data.toString();
        const found = /listening +(http:\S+)|"url":"(http:[^"]+)"/.exec(output);
        if (found !== null) resolve((found[1] ?? found[2])!);
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      void exit.then((code) => reject(new Error(`the server ended with ${code}: ${output}`)));
    });
    return new ServedProcess(child, exit, await within('the server starts', url, START_MS), () => output);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** What it has printed so far. */
  get output(): string {
    return this.#output();
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Its exit code, or the signal that ended it. */
  exit(): Promise<number | NodeJS.Signals> {
    return within('the server ends', this.#exit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }
}
