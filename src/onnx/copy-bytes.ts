/** Copies memory without JavaScript's looking at it. */
import type { Handle } from './api.ts';
import { libc } from './libc.ts';

let copy: ((to: Handle, from: Handle, bytes: number) => void) | undefined;

/**
 * The two ranges must not overlap. Views of them would do as well, but V8 counts what it has views of as memory of its own, and
 * collects garbage for it: eight sequences that begin like others made it stop for 150 ms.
 */
export function copyBytes(to: Handle, from: Handle, bytes: number): void {
  copy ??= libc().func('void memcpy(void *, void *, size_t)');
  copy(to, from, bytes);
}
