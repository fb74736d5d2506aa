import { describe, expect, test } from 'vitest';
import { createStreamLogger, type LogFormat } from '../../../src/server/logger.ts';

function lines(format: LogFormat) {
  const written: string[] = [];
  const logger = createStreamLogger({ format, write: (line) => written.push(line), now: () => Date.UTC(2030, 0, 1) });
  return { logger, written };
}

describe('the logger', () => {
  test('writes one JSON object a line', () => {
    const { logger, written } = lines('json');
    logger.warn('it\nbroke', { size: 10n, error: new Error('why'), level: 'fake' });
    expect(written).toHaveLength(1);
    expect(written[0]!.indexOf('\n')).toBe(written[0]!.length - 1);
    expect(JSON.parse(written[0]!)).toMatchObject({
      time: '2030-01-01T00:00:00.000Z',
      level: 'warn',
      message: 'it\nbroke',
      size: '10',
      error: expect.stringContaining('why'),
    });
  });

  test('writes one plain line, whatever the fields hold', () => {
    const { logger, written } = lines('plain');
    logger.info('request\nforged', { path: '/v1/models', note: 'two\nlines', missing: undefined, count: 3 });
    expect(written).toEqual(['2030-01-01T00:00:00.000Z info  request\\nforged path=/v1/models note="two\\nlines" count=3\n']);
  });
});
