/** Options that say who may call: one that is not understood must not leave the server more open, or less, than was meant. */
import { expect, it } from 'vitest';
import { serveCommand } from '../../../src/cli/serve-options.ts';

function parse(...words: readonly string[]) {
  const command = serveCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse([...words], { from: 'user' });
  return command.opts();
}

it('keys are collected', () => {
  expect(parse('--api-key', 'a,b', '--api-key', 'c').apiKey).toEqual(['a', 'b', 'c']);
});

it.each(['', ' ', ','])('a key of %j is refused', (key) => {
  expect(() => parse('--api-key', 'a', '--api-key', key)).toThrow(/Expected a key, got none/);
});

it.each(['--cors-origin', '--allowed-origin'])('%s takes origins as people write them', (option) => {
  const words = [option, 'https://App.example.org/,http://a.example:80', option, 'chrome-extension://abc'];
  const { corsOrigin, allowedOrigin } = parse(...words);
  expect([...corsOrigin, ...allowedOrigin]).toEqual(['https://app.example.org', 'http://a.example', 'chrome-extension://abc']);
});

it.each(['*', 'app.example.org', 'https://a.example/page', 'https://*.example.org', 'https://'])(
  'an origin of %j is refused',
  (origin) => {
    expect(() => parse('--cors-origin', origin)).toThrow(/Expected an origin such as/);
    expect(() => parse('--allowed-origin', origin)).toThrow(/Expected an origin such as/);
  },
);
