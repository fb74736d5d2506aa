import { describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { createHostCheck } from '../../../src/server/host-check.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { errorOf } from '../../support/server-requests.ts';

const OPTIONS = { host: '127.0.0.1', apiKeys: [], allowedOrigins: ['https://llm.example:8443/', 'null'] };

describe('the host check', () => {
  const check = createHostCheck(OPTIONS);

  test.each([
    undefined,
    'localhost',
    'localhost:8000',
    'LOCALHOST:9000',
    'app.localhost',
    '127.0.0.1:8000',
    '[::1]:8000',
    '10.0.0.3',
    'host.docker.internal:8000',
    'llm.example',
  ])('lets %s in', (host) => {
    expect(check(host)).toBe(true);
  });

  test.each(['evil.example:8000', 'localhost.evil.example', 'evil-localhost', 'internal', 'null', '', 'a b'])(
    'keeps %s out',
    (host) => {
      expect(check(host)).toBe(false);
    },
  );

  test.each<readonly [string, object]>([
    ['callers have keys', { apiKeys: ['k'] }],
    ['other machines reach the server', { host: '0.0.0.0' }],
    ['other machines reach the server over IPv6', { host: '::' }],
  ])('lets all in where %s', (_, options) => {
    expect(createHostCheck({ ...OPTIONS, ...options })('evil.example')).toBe(true);
  });

  test.each(['localhost', '::1', '127.0.0.53'])('is there for a server that is bound to %s', (host) => {
    expect(createHostCheck({ ...OPTIONS, host })('evil.example')).toBe(false);
  });
});

test.each(['/health', '/v1/models', '/metrics', '/nope'])('%s is refused by a name that is not the server’s', async (path) => {
  const { options, log } = createServerFixture({ config: { corsOrigins: ['http://evil.example'] } });
  const app = createApp({ ...options, checkHost: createHostCheck(OPTIONS) });
  const response = await app.request(path, { headers: { host: 'evil.example:8000', origin: 'http://evil.example' } });
  expect(response.status).toBe(403);
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
  expect(await errorOf(response)).toMatchObject({ code: 'host_not_allowed' });
  expect(log.at(-1)!.fields).toMatchObject({ path, status: 403 });
  expect((await app.request('/v1/models', { headers: { host: 'localhost:8000' } })).status).toBe(200);
});
