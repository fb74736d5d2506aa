import { AppError } from '../core/app-error.ts';

const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, µs: 1e-3 };

/**
 * A duration as scripts write it: `1h30m`, `1.5s`, `200ms`; a bare number is milliseconds.
 * @param where names the option, for errors
 * @returns milliseconds
 */
export function parseDuration(value: string | number, where: string): number {
  const text = String(value).trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|us|µs|h|m|s)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw new AppError('invalid_config', `Expected a duration such as 30s or 1m30s as ${where}, got ${JSON.stringify(value)}`, {
      details: { param: where },
    });
  }
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit!]!, 0);
}
