import type { AccessEntry } from './access-log.ts';
import type { Caller } from './api-keys.ts';

/** What the middlewares hand to the routes. */
export interface AppEnv {
  Variables: {
    requestId: string;
    access: AccessEntry;
    caller: Caller;
  };
}
