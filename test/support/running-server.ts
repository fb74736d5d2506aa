/** A listening server on a fake engine, closed at the end of each test. */
import { afterEach } from 'vitest';
import { type RunningServer, startServer } from '../../src/server/start-server.ts';
import { within } from './labelled-timeout.ts';
import { createServerFixture, type ServerFixture, type ServerFixtureOptions } from './server-fixture.ts';

export type ServerOnFake = ServerFixture & Pick<RunningServer, 'url' | 'port' | 'close'>;

/** Call once per test file; the function it returns starts a server on a free port. */
export function useServers(): (options?: ServerFixtureOptions) => Promise<ServerOnFake> {
  const running: RunningServer[] = [];
  afterEach(async () => {
    for (const server of running.splice(0)) await within('the server closes', server.close());
  });
  return async (options = {}) => {
    const fixture = createServerFixture({ ...options, config: { closeGraceMs: 200, ...options.config } });
    const server = await startServer({ ...fixture.options, host: '127.0.0.1', port: 0 });
    running.push(server);
    return { ...fixture, ...server };
  };
}
