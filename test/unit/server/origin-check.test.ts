import { describe, expect, test } from 'vitest';
import { createOriginCheck } from '../../../src/server/origin-check.ts';

describe('the origin check', () => {
  const check = createOriginCheck({ host: '127.0.0.1', port: 8000, allowedOrigins: ['https://app.example/'] });

  test.each([undefined, 'http://127.0.0.1:8000', 'http://localhost:8000', 'http://[::1]:8000', 'https://app.example'])(
    'lets %s in',
    (origin) => {
      expect(check(origin)).toBe(true);
    },
  );

  test.each([
    'null',
    'http://localhost:8001',
    'http://evil.example:8000',
    'http://evil.example',
    'https://app.example.evil.example',
    'http://app.example',
    '',
  ])('keeps %s out', (origin) => {
    expect(check(origin)).toBe(false);
  });

  test('knows the host it is bound to', () => {
    const bound = createOriginCheck({ host: 'box.local', port: 80, allowedOrigins: [] });
    expect(bound('http://box.local')).toBe(true);
    expect(bound('http://other.local')).toBe(false);
  });
});
