/** A server of this command's own, in a process of its own: what measures should not share threads with what is measured. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { AppError } from '../core/app-error.ts';

const BIN = resolve(import.meta.dirname, '../../bin/blockdraft.js');
/** Weights may have to be prepared first. */
const START_MS = 600_000;

export interface OwnServer extends AsyncDisposable {
  readonly url: string;
}

/**
 * Ready when it returns.
 * @param serveArguments those of `serve`; it listens on a free port of this machine
 * @throws AppError `invalid_config` with what the server said when it ended
 */
export async function startOwnServer(serveArguments: readonly string[], signal: AbortSignal): Promise<OwnServer> {
  const child = spawn(process.execPath, [BIN, 'serve', ...serveArguments, '--host', '127.0.0.1', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // An interrupt at the terminal is for whoever started the server.
    detached: true,
  });
  const exit = once(child, 'exit');
  // Whoever leaves in a hurry leaves no server behind.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  const stop = async () => {
    child.kill('SIGTERM');
    await exit;
    process.removeListener('exit', kill);
  };
  let said = '';
  const url = new Promise<string>((done, fail) => {
    const read = (data: Buffer) => {
      said += data.toString();
      const found = /listening +(http:\S+)/.exec(said)?.[1];
      if (found !== undefined) done(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    void exit.then(() =>
      fail(new AppError('invalid_config', `Expected a server to measure, but it ended: ${said.trim().slice(-2000)}`)),
    );
    const late = setTimeout(
      () => fail(new AppError('unavailable', `Expected the server to start, got: ${said.slice(-2000)}`)),
      START_MS,
    );
    late.unref();
    signal.addEventListener('abort', () => fail(signal.reason as Error));
  });
  try {
    return { url: await url, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
