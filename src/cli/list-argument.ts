/** Reads an option that may be repeated, or given once with commas, as from the environment. */
export function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, ...value.split(',').map((key) => key.trim())].filter((key) => key !== '');
}
