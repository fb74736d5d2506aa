import type { AccessEntry } from './access-log.ts';

/** What the middlewares hand to the routes. */
export interface AppEnv {
  Variables: {
    requestId: string;
    access: AccessEntry;
  };
}
