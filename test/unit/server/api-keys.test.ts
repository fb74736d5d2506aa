import { describe, expect, test } from 'vitest';
import { createApiKeyCheck } from '../../../src/server/api-keys.ts';

describe('the API key check', () => {
  const check = createApiKeyCheck(['first-key', 'second-key']);

  test.each(['Bearer first-key', 'Bearer second-key', 'bearer second-key', 'Bearer   first-key'])('lets %j pass', (header) => {
    expect(() => check(header)).not.toThrow();
  });

  test.each([
    undefined,
    '',
    'first-key',
    'Basic first-key',
    'Bearer',
    'Bearer ',
    'Bearer first',
    'Bearer first-key2',
    'Bearer FIRST-KEY',
    'Bearer first-key second-key',
  ])('refuses %j', (header) => {
    expect(() => check(header)).toThrow(expect.objectContaining({ code: 'unauthorized' }));
  });

  test('never repeats the key that was sent', () => {
    expect(() => check('Bearer my-typo')).toThrow(expect.objectContaining({ message: expect.not.stringContaining('my-typo') }));
  });

  test('lets everyone pass when there is no key', () => {
    expect(() => createApiKeyCheck([])(undefined)).not.toThrow();
  });
});
