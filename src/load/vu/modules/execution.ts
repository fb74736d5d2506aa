/** `k6/execution`, but for what only a test that is spread over machines knows. */
import { AbortedScript } from '../aborted-script.ts';
import type { ScenarioFacts } from '../protocol.ts';
import { requirePhase } from '../require-phase.ts';
import type { VuState } from '../vu-state.ts';

export function executionModule(state: VuState) {
  const scenario = (): ScenarioFacts => {
    requirePhase(state, 'exec.scenario', ['iteration']);
    return state.scenario!;
  };
  const tags = new Proxy(state.vuTags, {
    set(target, name, value) {
      target[String(name)] = String(value);
      return true;
    },
  });
  return {
    scenario: {
      get name() {
        return scenario().name;
      },
      get executor() {
        return scenario().executor;
      },
      get startTime() {
        return scenario().startTime;
      },
      /** Of its iterations, or of its time where that ends it. */
      get progress() {
        const { iterations, startTime, durationMs } = scenario();
        return Math.min(iterations === null ? (Date.now() - startTime) / durationMs : state.iterationInTest / iterations, 1);
      },
      get iterationInTest() {
        scenario();
        return state.iterationInTest;
      },
      get iterationInInstance() {
        scenario();
        return state.iterationInTest;
      },
    },
    instance: {
      get currentTestRunDuration() {
        return Date.now() - state.start.testStarted;
      },
    },
    test: {
      abort(reason = 'test aborted by the script'): never {
        throw new AbortedScript(reason);
      },
      fail(message = 'test marked as failed by the script'): void {
        state.send({ type: 'marked-failed', message });
      },
      options: state.start.options,
    },
    vu: {
      get idInTest() {
        return state.vu;
      },
      get idInInstance() {
        return state.vu;
      },
      get iterationInInstance() {
        return state.iteration;
      },
      get iterationInScenario() {
        return state.iterationInScenario;
      },
      tags,
      metrics: { tags },
    },
  };
}
