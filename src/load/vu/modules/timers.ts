/** `k6/timers`, which are globals too. An iteration lasts as long as they do. */
import type { VuState } from '../vu-state.ts';

type Callback = (...args: unknown[]) => unknown;

export function timersModule({ pending }: VuState) {
  const timers = new Map<number, () => void>();
  let next = 1;
  const clear = (id: number) => {
    timers.get(id)?.();
    timers.delete(id);
  };
  return {
    setTimeout(callback: Callback, delay = 0, ...args: unknown[]): number {
      const id = next++;
      const done = pending.begin();
      const timer = setTimeout(() => {
        pending.call(() => callback(...args));
        clear(id);
      }, delay);
      timers.set(id, () => {
        clearTimeout(timer);
        done();
      });
      return id;
    },
    setInterval(callback: Callback, delay: number, ...args: unknown[]): number {
      const id = next++;
      const done = pending.begin();
      const timer = setInterval(() => pending.call(() => callback(...args)), delay);
      timers.set(id, () => {
        clearInterval(timer);
        done();
      });
      return id;
    },
    clearTimeout: clear,
    clearInterval: clear,
  };
}
