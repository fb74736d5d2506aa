/** Levels of objects and lists that JSON in a chat may have; templates and schemas are worked on by recursion. */
export const MAX_DEPTH = 64;

/** Whether a JSON value has no more levels than that. */
export function isShallow(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}
