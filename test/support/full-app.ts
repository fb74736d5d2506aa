/** An application in which nothing is switched off, on a fake engine. */
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SwapRecord } from '../../src/engine/engine.ts';
import { createApp } from '../../src/server/app.ts';
import { DEFAULT_SERVER_CONFIG, type RequestLimits } from '../../src/server/server-config.ts';
import { ValidationJobs } from '../../src/server/validation/validation-jobs.ts';
import { drafterStatus } from './drafter-status.ts';
import type { FakeEngineOptions } from './fake-engine.ts';
import { createServerFixture, type ServerFixture } from './server-fixture.ts';
import type { TestApp } from './server-requests.ts';

export interface FullApp extends ServerFixture {
  readonly app: TestApp;
  /** With the API key. */
  readonly headers: Readonly<Record<string, string>>;
}

const SWAP: SwapRecord = {
  id: 1,
  drafter: 'a',
  path: 'run-2',
  time: '2030-01-01T00:00:00.000Z',
  state: 'watching',
  before: null,
  after: null,
  reason: null,
};

/** Has `run`, and `validated` with answers. */
export const JOB_FOLDER = realpathSync(resolve(import.meta.dirname, 'job-folder'));

/** The drafter `a` can be swapped and measured; each measurement ends at once. */
export function createFullApp(engine: FakeEngineOptions = {}, limits: Partial<RequestLimits> = {}): FullApp {
  const fixture = createServerFixture({
    config: {
      apiKeys: ['k'],
      allowTrace: true,
      allowDrafterSwap: true,
      limits: { ...DEFAULT_SERVER_CONFIG.limits, ...limits },
    },
    engine: {
      loadDrafter: () => SWAP,
      drafterStatus: () => [
        drafterStatus({ swaps: [SWAP] }),
        drafterStatus({ name: 'b', kind: 'ngram', folder: null, isDefault: false, off: 'b did not answer' }),
      ],
      ...engine,
    },
  });
  const run = async () => ({ exitCode: 0, result: { figures: [1] } });
  const validation = new ValidationJobs({ run }, { output: JOB_FOLDER, runs: JOB_FOLDER });
  const app = createApp({ ...fixture.options, validation, serverArguments: { port: 8000 } });
  return { ...fixture, app, headers: { authorization: 'Bearer k' } };
}
