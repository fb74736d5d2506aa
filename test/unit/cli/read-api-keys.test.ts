import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readApiKeys } from '../../../src/cli/read-api-keys.ts';

const folder = mkdtempSync(join(tmpdir(), 'api-keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(text: string): string {
  const path = join(folder, 'keys');
  writeFileSync(path, text);
  return path;
}

test('keys are read one a line', () => {
  expect(readApiKeys(fileOf('# staff\nkey-1\r\n\n  key-2  \n#key-3\n'))).toEqual(['key-1', 'key-2']);
});

test.each([
  ['', /no key/],
  ['# none\n', /no key/],
  ['two words', /a key with blanks/],
  ['schlüssel', /a key with blanks/],
])('a file with %j is refused', (text, message) => {
  expect(() => readApiKeys(fileOf(text))).toThrow(
    expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) }),
  );
});

test('a refusal tells no key', () => {
  expect(() => readApiKeys(fileOf('secret word'))).toThrow(
    expect.not.objectContaining({ message: expect.stringMatching(/secret/) }),
  );
});

test('a file that is not there is refused', () => {
  expect(() => readApiKeys(join(folder, 'nothing'))).toThrow(expect.objectContaining({ code: 'invalid_config' }));
});
