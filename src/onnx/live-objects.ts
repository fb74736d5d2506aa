/** Counts native objects, so that a leak is a number that does not return to zero. */

export type NativeKind = 'tensor' | 'session' | 'binding' | 'prepacked-weights' | 'mapped-file';

const counts = new Map<NativeKind, number>();

export function countCreated(kind: NativeKind): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

export function countReleased(kind: NativeKind): void {
  counts.set(kind, (counts.get(kind) ?? 0) - 1);
}

/** Objects alive now, by kind; kinds without any are left out. */
export function liveObjects(): Readonly<Partial<Record<NativeKind, number>>> {
  return Object.fromEntries([...counts].filter(([, count]) => count !== 0));
}
