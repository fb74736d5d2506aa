import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { jsonDepth } from '../../../src/server/json-depth.ts';
import { parseClientFrame } from '../../../src/server/websocket/client-frame.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { errorOf } from '../../support/server-requests.ts';

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test('the depth of a text is that of its value, whatever its strings hold', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: fc.constantFrom('[', '{', '"', '\\\\', ']', 'a') }), (value) => {
      expect(jsonDepth(JSON.stringify(value))).toBe(depthOf(value));
    }),
  );
});

test.each([
  ['/v1/completions', 127, 200],
  ['/v1/completions', 128, 400],
  ['/v1/completions', 600_000, 400],
])('%s answers a body of depth 1 + %i with %i', async (path, depth, status) => {
  const app = createApp(createServerFixture().options);
  const metadata = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const body = `{"prompt":"x","metadata":${metadata}}`;
  const response = await app.request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(response.status).toBe(status);
  if (status === 400) expect(await errorOf(response)).toMatchObject({ code: 'invalid_json' });
});

test('frames of a WebSocket are as deep at most', () => {
  const frame = (depth: number) => `{"prompt":"x","metadata":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  expect(parseClientFrame(frame(127))).toMatchObject({ type: 'request' });
  expect(() => parseClientFrame(frame(128))).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});
