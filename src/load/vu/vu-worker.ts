/** The thread of a virtual user: a JavaScript runtime of its own, as a script may expect. */
import { parentPort, workerData } from 'node:worker_threads';
import { AbortedScript } from './aborted-script.ts';
import { loadScript, type ScriptExports } from './load-script.ts';
import type { FromVu, Job, ScriptError, VuStart } from './protocol.ts';
import { scriptModules } from './script-modules.ts';
import { VuState } from './vu-state.ts';

const port = parentPort!;
const send = (message: FromVu) => port.postMessage(message);
const state = new VuState(workerData as VuStart, send);

let exported: ScriptExports = {};
try {
  exported = loadScript(state, scriptModules(state));
  send({
    type: 'ready',
    info: {
      options: JSON.parse(JSON.stringify(exported['options'] ?? {})) as unknown,
      functions: Object.keys(exported).filter((name) => typeof exported[name] === 'function'),
      metrics: [...state.metrics.values()],
      shared: state.shared,
    },
  });
} catch (error) {
  send({ type: 'failed', error: scriptError(error) });
}

port.on('message', (job: Job) => {
  run(job).then(
    (result) => finish(result, null),
    (error: unknown) => finish(undefined, scriptError(error)),
  );
});

function finish(result: unknown, error: ScriptError | null): void {
  state.flush();
  send({ type: 'done', result, error });
}

async function run(job: Job): Promise<unknown> {
  state.phase = job.kind;
  switch (job.kind) {
    case 'iteration':
      return iterate(job);
    case 'setup':
      return JSON.stringify(await called('setup', []));
    case 'teardown':
      return void (await called('teardown', [job.data]));
    case 'summary':
      return called('handleSummary', [job.data]);
  }
}

async function iterate(job: Extract<Job, { kind: 'iteration' }>): Promise<void> {
  state.scenario = job.scenario;
  state.env = { ...state.start.env, ...job.scenario.env };
  state.iterationInTest = job.iterationInTest;
  state.iterationInScenario = job.iterationInScenario;
  const started = performance.now();
  try {
    await called(job.function, [job.data]);
  } finally {
    state.add('iteration_duration', performance.now() - started);
    state.add('iterations', 1);
    state.iteration += 1;
    state.group = '';
  }
}

async function called(name: string, args: readonly unknown[]): Promise<unknown> {
  const result: unknown = await (exported[name] as (...args: readonly unknown[]) => unknown)(...args);
  await state.pending.idle();
  return result;
}

function scriptError(error: unknown): ScriptError {
  if (error instanceof AbortedScript) return { cause: 'aborted', message: error.message };
  return { cause: 'thrown', message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}
