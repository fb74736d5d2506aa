/** What a script can import. */
import { HttpBridge } from './http-bridge.ts';
import { dataModule } from './modules/data.ts';
import { executionModule } from './modules/execution.ts';
import { httpModule } from './modules/http.ts';
import { k6Module } from './modules/k6.ts';
import { metricsModule } from './modules/metrics.ts';
import { timersModule } from './modules/timers.ts';
import { websocketsModule } from './modules/websockets.ts';
import type { VuState } from './vu-state.ts';

export function scriptModules(state: VuState): ReadonlyMap<string, object> {
  const modules: Readonly<Record<string, object>> = {
    k6: k6Module(state),
    'k6/data': dataModule(state),
    'k6/execution': executionModule(state),
    'k6/http': httpModule(state, new HttpBridge(state.start)),
    'k6/metrics': metricsModule(state),
    'k6/timers': timersModule(state),
    'k6/websockets': websocketsModule(state),
  };
  // Of each there is a default export too.
  return new Map(
    Object.entries(modules).map(([name, exported]) => [
      name,
      Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(exported), ...INTEROP, default: { value: exported } }),
    ]),
  );
}

/** Says that `default` is an export and not the module itself. */
const INTEROP = { __esModule: { value: true } };
