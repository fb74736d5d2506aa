/** `k6`. */
import type { Tags } from '../../metrics/metric.ts';
import { requirePhase } from '../require-phase.ts';
import type { VuState } from '../vu-state.ts';

export function k6Module(state: VuState) {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  return {
    check<Value>(value: Value, sets: Readonly<Record<string, (value: Value) => unknown>>, tags: Tags = {}): boolean {
      requirePhase(state, 'check', ['setup', 'iteration', 'teardown']);
      let areAllTrue = true;
      for (const [name, test] of Object.entries(sets)) {
        const passed = Boolean(typeof test === 'function' ? test(value) : test);
        areAllTrue &&= passed;
        state.add('checks', passed ? 1 : 0, { ...tags, check: name });
        state.send({ type: 'checked', group: state.group, name, passed });
      }
      return areAllTrue;
    },

    fail(message = ''): never {
      throw new Error(message);
    },

    /** The function may not be asynchronous, as in k6: what it awaits would be counted elsewhere. */
    group<Result>(name: string, run: () => Result): Result {
      requirePhase(state, 'group', ['setup', 'iteration', 'teardown']);
      const outer = state.group;
      state.group = `${outer}::${name}`;
      const started = performance.now();
      try {
        const result = run();
        if (result instanceof Promise) throw new Error(`Expected a synchronous function in group "${name}", got an async one`);
        return result;
      } finally {
        state.add('group_duration', performance.now() - started);
        state.group = outer;
      }
    },

    sleep(seconds: number): void {
      requirePhase(state, 'sleep', ['setup', 'iteration', 'teardown']);
      state.flush();
      if (seconds > 0) Atomics.wait(sleeper, 0, 0, seconds * 1000);
    },
  };
}
