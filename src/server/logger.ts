/** Where the server writes what happened. */
import type { Writable } from 'node:stream';
import { type Logger as PinoLogger, pino, stdSerializers, stdTimeFunctions } from 'pino';
import pretty from 'pino-pretty';

/**
 * `logger.info({ facts }, 'message')`; an error is the fact `error`. Nothing secret is ever passed: no key, no prompt, no
 * answer. {@link REDACTED} is for what slips in all the same.
 */
export type Logger = PinoLogger;

export const LOG_FORMATS = ['pretty', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  /** `pretty`: a line for people; `json`: one object a line. Default `pretty`. */
  readonly format?: LogFormat;
  /** Lines below it are not written. Default `info`. */
  readonly level?: LogLevel;
  /** Takes whole lines. Default: standard error, written before the call returns, so that no exit loses a line. */
  readonly destination?: Writable;
}

/** Facts of these names, and of these names within a fact, never reach a line. */
const REDACTED = ['authorization', 'apiKey', 'api_key', 'prompt', 'messages', 'content', 'text'] as const;

const STANDARD_ERROR = 2;

/** One for the process; requests get children of it. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const { format = 'pretty', level = 'info', destination } = options;
  return pino(
    {
      level,
      // Who collects lines knows the host and the process already.
      base: null,
      messageKey: 'message',
      errorKey: 'error',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: serializeError },
      redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    },
    format === 'json' ? (destination ?? pino.destination({ dest: STANDARD_ERROR, sync: true })) : prettyStream(destination),
  );
}

/** A logger that keeps nothing. */
export const silentLogger: Logger = pino({ level: 'silent' });

function prettyStream(destination: Writable | undefined) {
  return pretty({
    destination: destination ?? STANDARD_ERROR,
    sync: true,
    colorize: destination === undefined && process.stderr.isTTY,
    singleLine: true,
    messageKey: 'message',
    errorLikeObjectKeys: ['error'],
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l',
  });
}

/** Message and stack with those of the causes. What else an error carries may be a caller's, and stays out. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = stdSerializers.err(error);
  return { type, message, ...('code' in error ? { code: error.code } : {}), stack };
}
