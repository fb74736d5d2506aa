import { expect, it } from 'vitest';
import { serveCommand } from '../../../src/cli/serve-options.ts';

const parse = (...args: string[]) =>
  serveCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parse(args, { from: 'user' })
    .opts();

it('takes the collector from the option or from the variable that OpenTelemetry names', () => {
  expect(parse().otlpEndpoint).toBeUndefined();
  expect(parse('--otlp-endpoint', 'http://collector:4318').otlpEndpoint).toBe('http://collector:4318');
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'https://traces.example/base/';
  try {
    expect(parse().otlpEndpoint).toBe('https://traces.example/base/');
  } finally {
    delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  }
});

it.each(['collector:4318', 'grpc://collector:4317', 'http://user:secret@collector:4318', ''])(
  'refuses the collector %s',
  (url) => {
    expect(() => parse('--otlp-endpoint', url)).toThrow(/Expected a URL/);
  },
);

it('logs for people from info on, every ten seconds, unless told otherwise', () => {
  expect(parse()).toMatchObject({ logFormat: 'pretty', logLevel: 'info', logStatsInterval: 10 });
  expect(() => parse('--log-format', 'plain')).toThrow(/Allowed choices are pretty, json/);
  expect(() => parse('--log-level', 'verbose')).toThrow(/Allowed choices are debug, info, warn, error, silent/);
});
