import { InvalidArgumentError } from '@commander-js/extra-typings';

/** Parses a whole number of a range. */
export function integer(least: number, most = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`Expected an integer ${range}.`);
  };
}
