/** 1, 2, 4 and so on below a number, and the number: sizes that serve any count up to it at less than twice its cost. */
export function doublings(most: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size < most; size *= 2) sizes.push(size);
  return [...sizes, most];
}
