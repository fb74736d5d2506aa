/** Where the server writes what happened. */

export type LogFields = Readonly<Record<string, unknown>>;

/** Fields are facts beside the message. Nothing secret is ever passed: no key, no prompt, no answer. */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFormat = 'plain' | 'json';

export interface StreamLoggerOptions {
  /** `json`: one object a line. Default `plain`. */
  readonly format?: LogFormat;
  /** Takes one line, its newline included. Default: standard error. */
  readonly write?: (line: string) => void;
  /** Milliseconds since the epoch. Default: the system clock. */
  readonly now?: () => number;
}

type Level = 'info' | 'warn' | 'error';

/** A logger that writes one line per message, whatever the fields hold. */
export function createStreamLogger(options: StreamLoggerOptions = {}): Logger {
  const write = options.write ?? ((line: string) => void process.stderr.write(line));
  const now = options.now ?? Date.now;
  const format = options.format === 'json' ? jsonLine : plainLine;
  const log =
    (level: Level) =>
    (message: string, fields: LogFields = {}) => {
      write(`${format(new Date(now()).toISOString(), level, message, fields)}\n`);
    };
  return { info: log('info'), warn: log('warn'), error: log('error') };
}

/** A logger that keeps nothing. */
export const silentLogger: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

function jsonLine(time: string, level: Level, message: string, fields: LogFields): string {
  const printable = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, printableValue(value)]));
  return JSON.stringify({ ...printable, time, level, message });
}

function plainLine(time: string, level: Level, message: string, fields: LogFields): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => ` ${name}=${plainValue(printableValue(value))}`);
  return `${time} ${level.padEnd(5)} ${escapeControls(message)}${pairs.join('')}`;
}

/** JSON has no bigint, and an Error would print as `{}`. */
function printableValue(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return value.stack ?? value.message;
  return value;
}

function plainValue(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
}

/** A newline in a message would forge a second line. */
function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f]/g, (char) => JSON.stringify(char).slice(1, -1));
}
