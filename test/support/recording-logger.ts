import { Writable } from 'node:stream';
import { createLogger, type Logger, type LogLevel } from '../../src/server/logger.ts';

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The server's own logger, whose lines are put into the list; times are left out. */
export function recordingLogger(lines: LogLine[], level: LogLevel = 'debug'): Logger {
  const destination = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      const { time: _, level: at, message, ...fields } = JSON.parse(line);
      lines.push({ level: at, message, fields });
      done();
    },
  });
  return createLogger({ format: 'json', level, destination });
}
