import { expect, test } from 'vitest';
import { newRequestId, requestIdFromHeader } from '../../../src/server/request-id.ts';

test.each(['abc', 'A.b_c-1', 'x'.repeat(128)])('a harmless id is kept: %s', (id) => {
  expect(requestIdFromHeader(id)).toBe(id);
});

test.each([undefined, '', 'a b', 'a\nb', 'a/../b', '{"a":1}', 'x'.repeat(129), 'é'])(
  'an id that is not is replaced: %j',
  (id) => {
    expect(requestIdFromHeader(id)).toMatch(/^[0-9a-f]{32}$/);
  },
);

test('fresh ids differ', () => {
  expect(newRequestId()).not.toBe(newRequestId());
});
