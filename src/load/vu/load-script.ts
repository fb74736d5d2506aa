/** Runs the init code of a script in this thread. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { inspect } from 'node:util';
import { compileFunction } from 'node:vm';
import type { timersModule } from './modules/timers.ts';
import type { FromVu } from './protocol.ts';
import { requirePhase } from './require-phase.ts';
import type { VuState } from './vu-state.ts';

export type ScriptExports = Readonly<Record<string, unknown>>;

export function loadScript(state: VuState, modules: ReadonlyMap<string, object>): ScriptExports {
  const { code, filename } = state.start;
  const timers = modules.get('k6/timers') as ReturnType<typeof timersModule>;
  const scope: Readonly<Record<string, unknown>> = {
    require(name: string) {
      const found = modules.get(name);
      if (found === undefined) {
        throw new Error(
          `Expected one of ${[...modules.keys()].join(', ')} to be imported, got ${name}: this runner is not k6 itself`,
        );
      }
      return found;
    },
    open(path: string, mode?: string) {
      requirePhase(state, 'open', ['init']);
      const bytes = readFileSync(resolve(dirname(filename), path));
      return mode === 'b' ? new Uint8Array(bytes).buffer : bytes.toString();
    },
    console: scriptConsole(state),
    setTimeout: timers.setTimeout,
    clearTimeout: timers.clearTimeout,
    setInterval: timers.setInterval,
    clearInterval: timers.clearInterval,
    __k6: state,
  };
  const module = { exports: {} as ScriptExports };
  const names = [...Object.keys(scope), 'module', 'exports', 'process', 'global'];
  const run = compileFunction(code, names, { filename });
  run(...Object.values(scope), module, module.exports, undefined, undefined);
  return module.exports;
}

function scriptConsole(state: VuState) {
  const at =
    (level: Extract<FromVu, { type: 'log' }>['level']) =>
    (...values: readonly unknown[]): void => {
      const text = values.map((value) => (typeof value === 'string' ? value : inspect(value, { breakLength: 120 }))).join(' ');
      state.send({ type: 'log', level, text });
    };
  return { log: at('info'), info: at('info'), warn: at('warn'), error: at('error'), debug: at('debug') };
}
