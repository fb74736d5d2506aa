/**
 * Index of the first value from `start` on that is above the bound, or NaN; the number of values when there is none. Looks at four
 * at a time, for in a row of logits few values are above a bound that is worth asking for.
 */
export function nextAbove(values: Float32Array, bound: number, start: number): number {
  let index = start;
  const last = values.length - 4;
  while (
    index <= last &&
    values[index]! <= bound &&
    values[index + 1]! <= bound &&
    values[index + 2]! <= bound &&
    values[index + 3]! <= bound
  ) {
    index += 4;
  }
  while (index < values.length && values[index]! <= bound) index++;
  return index;
}
