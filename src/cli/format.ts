/** Numbers as people read them. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Decimal units, three significant digits: `151 MB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : Number(value.toPrecision(3))} ${UNITS[unit]}`;
}
