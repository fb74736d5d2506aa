import { describe, expect, test } from 'vitest';
import type { EngineStatus } from '../../../src/engine/engine.ts';
import { createApp } from '../../../src/server/app.ts';
import { DEFAULT_SERVER_CONFIG } from '../../../src/server/server-config.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';

function setUp(options: ServerFixtureOptions = {}) {
  const fixture = createServerFixture(options);
  return { ...fixture, app: createApp(fixture.options) };
}

describe.each(['/health', '/ready', '/ping'])('GET %s', (path) => {
  test('says ok when the engine takes requests', async () => {
    const response = await setUp().app.request(path);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: 'ok' });
  });

  test.each<EngineStatus['state']>(['loading', 'draining', 'failed'])(
    'says unavailable while the engine is %s',
    async (state) => {
      const { app } = setUp({ status: (engine) => ({ state, engine, message: 'a secret path' }) as EngineStatus });
      const response = await app.request(path);
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
      const error = await errorOf(response);
      expect(error).toMatchObject({ type: 'unavailable_error', code: 'unavailable' });
      expect(error.message).not.toContain('secret');
    },
  );
});

test.each<EngineStatus['state']>(['loading', 'draining', 'failed'])(
  'GET /live says ok while the engine is %s',
  async (state) => {
    const { app } = setUp({ status: (engine) => ({ state, engine, message: 'x' }) as EngineStatus });
    expect(await (await app.request('/live')).json()).toEqual({ status: 'ok' });
  },
);

describe('while the engine is not ready', () => {
  test.each(['/v1/completions', '/v1/chat/completions'])('POST %s says unavailable', async (path) => {
    const { app } = setUp({ status: () => ({ state: 'loading' }) });
    const response = await post(app, path, { prompt: 'x' });
    expect(response.status).toBe(503);
    expect(await errorOf(response)).toMatchObject({ type: 'unavailable_error' });
  });

  test('the counters can be read', async () => {
    const { app } = setUp({ status: () => ({ state: 'loading' }) });
    expect((await app.request('/metrics')).status).toBe(200);
  });
});

describe('GET /v1/models', () => {
  const card = { id: 'org/fake', object: 'model', created: 1_893_456_000, owned_by: 'blockdraft', max_model_len: 512 };

  test('lists the one model', async () => {
    const { app } = setUp({ engine: { info: { model: 'org/fake' } } });
    expect(await (await app.request('/v1/models')).json()).toEqual({ object: 'list', data: [card] });
  });

  test.each(['/v1/models/org/fake', '/v1/models/org%2Ffake'])('%s is that model', async (path) => {
    const { app } = setUp({ engine: { info: { model: 'org/fake' } } });
    expect(await (await app.request(path)).json()).toEqual(card);
  });

  test('an unknown one is not found', async () => {
    const response = await setUp().app.request('/v1/models/other');
    expect(response.status).toBe(404);
    expect(await errorOf(response)).toMatchObject({ code: 'model_not_found', param: 'model' });
  });
});

test('GET /version tells the version', async () => {
  expect(await (await setUp().app.request('/version')).json()).toEqual({ version: '9.9.9' });
});

describe('refusals by HTTP itself', () => {
  test.each<readonly [string, string, string]>([
    ['GET', '/v1/completions', 'POST'],
    ['PUT', '/v1/chat/completions', 'POST'],
    ['DELETE', '/v1/models', 'GET, HEAD'],
    ['POST', '/v1/models/fake-model', 'GET, HEAD'],
    ['POST', '/health', 'GET, HEAD'],
    ['OPTIONS', '/v1/completions', 'POST'],
    ['POST', '/metrics', 'GET, HEAD'],
  ])('%s %s is 405 and allows %s', async (method, path, allow) => {
    const response = await setUp().app.request(path, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe(allow);
    expect(await errorOf(response)).toMatchObject({
      type: 'invalid_request_error',
      code: 'method_not_allowed',
      message: `Expected method ${allow}, got ${method}. Use ${allow}.`,
    });
  });

  test.each(['/', '/v1', '/v1/completions/', '/v1/embeddings', '/health/x'])('%s is 404', async (path) => {
    const response = await setUp().app.request(path);
    expect(response.status).toBe(404);
    expect(await errorOf(response)).toMatchObject({ code: 'not_found' });
  });

  test.each([undefined, 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'])(
    'content-type %s is 415',
    async (type) => {
      const headers = type === undefined ? {} : { 'content-type': type };
      const body = new TextEncoder().encode('{"prompt":"x"}');
      const response = await setUp().app.request('/v1/completions', { method: 'POST', headers, body });
      expect(response.status).toBe(415);
      expect(await errorOf(response)).toMatchObject({ code: 'unsupported_media_type' });
    },
  );

  test('content-type application/json may have parameters', async () => {
    const response = await post(
      setUp().app,
      '/v1/completions',
      { prompt: 'x' },
      { headers: { 'content-type': 'Application/JSON; charset=utf-8' } },
    );
    expect(response.status).toBe(200);
  });

  test.each<readonly [string, string | Uint8Array<ArrayBuffer>]>([
    ['no JSON', '{"prompt":'],
    ['nothing', ''],
    ['no UTF-8', Uint8Array.from(Buffer.from('{"prompt":"\xff"}', 'latin1'))],
  ])('a body that is %s is 400', async (_, body) => {
    const headers = { 'content-type': 'application/json' };
    const response = await setUp().app.request('/v1/completions', { method: 'POST', headers, body });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ code: 'invalid_json', param: null });
  });

  const small = { limits: { ...DEFAULT_SERVER_CONFIG.limits, maxBodyBytes: 100 } };

  test('a body that announces too many bytes is 413', async () => {
    const headers = { 'content-type': 'application/json', 'content-length': '101' };
    const body = JSON.stringify({ prompt: 'x' });
    const response = await setUp({ config: small }).app.request('/v1/completions', { method: 'POST', headers, body });
    expect(response.status).toBe(413);
    expect(await errorOf(response)).toMatchObject({ code: 'request_too_large' });
  });

  test('a body that only turns out too long is 413, and is not read to its end', async () => {
    let pulls = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulls += 1;
        if (pulls > 1000) controller.close();
        else controller.enqueue(new TextEncoder().encode('x'.repeat(60)));
      },
    });
    const request = new Request('http://localhost/v1/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      duplex: 'half',
    } as RequestInit);
    const response = await setUp({ config: small }).app.request(request);
    expect(response.status).toBe(413);
    expect(pulls).toBeLessThan(10);
  });
});

describe('API keys', () => {
  const config = { apiKeys: ['key-1', 'key-2'] };

  test.each([
    '/v1/models',
    '/v1/models/x',
    '/metrics',
    '/server_info',
    '/tokenize',
    '/detokenize',
    '/v1/completions/render',
    '/version',
    '/openapi.json',
    '/docs',
    '/docs/swagger-ui.css',
    '/nope',
    '/health/',
    '//health',
    '/v1/completions',
  ])('%s is closed without one', async (path) => {
    const response = await setUp({ config }).app.request(path);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await errorOf(response)).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key' });
  });

  test.each(['/health', '/ready', '/ping', '/live'])('%s is open', async (path) => {
    expect((await setUp({ config }).app.request(path)).status).toBe(200);
  });

  test.each(['key-1', 'key-2'])('%s opens the rest', async (key) => {
    const { app, log } = setUp({ config });
    const headers = { authorization: `Bearer ${key}` };
    expect((await app.request('/v1/models', { headers })).status).toBe(200);
    expect((await post(app, '/v1/completions', { prompt: 'x' }, { headers })).status).toBe(200);
    expect(JSON.stringify(log)).not.toContain(key);
  });

  test('the body is not read without one', async () => {
    const response = await setUp({ config }).app.request('/v1/completions', { method: 'POST', body: 'not json' });
    expect(response.status).toBe(401);
  });
});

describe('every response', () => {
  test.each(['/health', '/nope', '/v1/models/other'])('to %s echoes a harmless X-Request-Id', async (path) => {
    const response = await setUp().app.request(path, { headers: { 'x-request-id': 'my-id.1' } });
    expect(response.headers.get('x-request-id')).toBe('my-id.1');
  });

  test('has an id of its own instead of one that is not', async () => {
    const response = await setUp().app.request('/health', { headers: { 'x-request-id': 'a b"c' } });
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f]{32}$/);
  });

  test('gives no page of another origin leave to read it', async () => {
    const response = await setUp().app.request('/health', { headers: { origin: 'http://evil.example' } });
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('hides what an unexpected error says', async () => {
    const { app, log } = setUp({ engine: { script: () => ({ text: 'x', failsAt: { step: 0, error: new Error('secret') } }) } });
    const response = await post(app, '/v1/completions', { prompt: 'x' });
    expect(response.status).toBe(500);
    const error = await errorOf(response);
    expect(error).toMatchObject({ type: 'server_error', code: 'internal_error' });
    expect(error.message).not.toContain('secret');
    expect(error.message).toContain(response.headers.get('x-request-id'));
    expect(log.find((line) => line.level === 'error')?.fields).toMatchObject({
      requestId: response.headers.get('x-request-id'),
    });
  });
});

describe('pages of other origins', () => {
  const config = { apiKeys: ['key-1'], corsOrigins: ['https://app.example'] };
  const allowed = (response: Response) => response.headers.get('access-control-allow-origin');

  test('may ask and read where they are allowed to, refusals too', async () => {
    const { app } = setUp({ config });
    const headers = { origin: 'https://app.example' };
    const preflight = await app.request('/v1/completions', {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
    });
    expect(preflight.status).toBe(204);
    expect(allowed(preflight)).toBe('https://app.example');
    expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization');
    const refused = await app.request('/v1/models', { headers });
    expect(refused.status).toBe(401);
    expect(allowed(refused)).toBe('https://app.example');
    const answered = await post(
      app,
      '/v1/completions',
      { prompt: 'x', stream: true },
      { headers: { ...headers, authorization: 'Bearer key-1' } },
    );
    expect(answered.status).toBe(200);
    expect(allowed(answered)).toBe('https://app.example');
  });

  test('may not read where they are not', async () => {
    const { app } = setUp({ config });
    expect(allowed(await app.request('/health', { headers: { origin: 'https://evil.example' } }))).toBeNull();
  });
});
