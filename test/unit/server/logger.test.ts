import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/core/app-error.ts';
import { createLogger, type LogFormat, type LogLevel } from '../../../src/server/logger.ts';

function lines(format: LogFormat, level: LogLevel = 'info') {
  const written: string[] = [];
  const destination = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      written.push(line);
      done();
    },
  });
  return { logger: createLogger({ format, level, destination }), written };
}

describe('a logger of JSON', () => {
  test('writes one object a line, whatever the facts hold', () => {
    const { logger, written } = lines('json');
    logger.warn({ size: 10n, note: 'two\nlines' }, 'it\nbroke');
    expect(written).toHaveLength(1);
    expect(written[0]!.indexOf('\n')).toBe(written[0]!.length - 1);
    expect(JSON.parse(written[0]!)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: 'warn',
      message: 'it\nbroke',
      size: 10,
      note: 'two\nlines',
    });
  });

  test('tells of an error its code, its stack and its causes, and nothing else that it carries', () => {
    const { logger, written } = lines('json');
    const error = new AppError('internal', 'the outer one', {
      cause: new Error('the inner one'),
      details: { param: 'a secret of the caller' },
    });
    logger.error({ error }, 'request failed');
    const line = JSON.parse(written[0]!);
    expect(line.error).toEqual({
      type: 'AppError',
      code: 'internal',
      message: 'the outer one: the inner one',
      stack: expect.stringMatching(/the outer one.+logger\.test.+caused by:.+the inner one/s),
    });
    expect(written[0]).not.toContain('secret');
  });

  test('keeps keys, prompts and answers out, also where they slipped in', () => {
    const { logger, written } = lines('json');
    logger.info({ authorization: 'Bearer k', request: { prompt: 'secret', messages: ['secret'] }, text: 'secret' }, 'x');
    expect(written[0]).not.toMatch(/Bearer|secret/);
    expect(written[0]!.match(/\[redacted\]/g)).toHaveLength(4);
  });

  test('gives children its own facts on each line', () => {
    const { logger, written } = lines('json');
    const child = logger.child({ requestId: 'r1' });
    child.info('one');
    child.error({ code: 'internal' }, 'two');
    expect(written.map((line) => JSON.parse(line).requestId)).toEqual(['r1', 'r1']);
  });

  test('leaves out what is below its level', () => {
    const { logger, written } = lines('json', 'warn');
    logger.info('one');
    logger.warn('two');
    expect(written.map((line) => JSON.parse(line).message)).toEqual(['two']);
  });
});

describe('a logger for people', () => {
  test('writes one line with the facts behind the message, control characters escaped', () => {
    const { logger, written } = lines('pretty');
    logger.info({ path: '/v1/models', note: 'two\nlines \u001b[31m', count: 3, missing: undefined }, 'request');
    expect(written).toEqual([
      expect.stringMatching(
        /^\[[\d :.-]+\] INFO: request \{"path":"\/v1\/models","note":"two\\nlines \\u001b\[31m","count":3\}\n$/,
      ),
    ]);
  });

  test('indents the stack of an error below its line', () => {
    const { logger, written } = lines('pretty');
    logger.error({ error: new Error('why\nforged') }, 'request failed');
    const [first, ...rest] = written.join('').trimEnd().split('\n');
    expect(first).toContain('ERROR: request failed');
    expect(rest.filter((line) => !line.startsWith('    '))).toEqual([]);
    expect(rest.join('\n')).toContain('logger.test');
  });
});
