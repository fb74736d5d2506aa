/** `k6/data`. */
import { requirePhase } from '../require-phase.ts';
import type { VuState } from '../vu-state.ts';

export function dataModule(state: VuState) {
  return {
    /** Its function runs once in a test; elements are copies that cannot be changed. */
    SharedArray: class {
      constructor(name: string, make: () => unknown) {
        requirePhase(state, `SharedArray "${name}"`, ['init']);
        const elements = state.shared[name] ?? encoded(name, make());
        state.shared[name] = elements;
        // biome-ignore lint/correctness/noConstructorReturn: scripts index it like the array that it stands for
        return Object.freeze(elements.map((json) => frozen(JSON.parse(json))));
      }
    },
  };
}

function encoded(name: string, made: unknown): readonly string[] {
  if (!Array.isArray(made)) throw new Error(`Expected an array from the function of SharedArray "${name}"`);
  return made.map((element) => JSON.stringify(element));
}

function frozen(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) for (const part of Object.values(Object.freeze(value))) frozen(part);
  return value;
}
