/** What is known of this number of sequences, or of the nearest one; null when nothing is. */
export function ofNearestCount<Known>(known: ReadonlyMap<number, Known>, sequences: number): Known | null {
  let near: number | null = null;
  for (const count of known.keys()) {
    if (near === null || Math.abs(count - sequences) < Math.abs(near - sequences)) near = count;
  }
  return near === null ? null : (known.get(near) as Known);
}
