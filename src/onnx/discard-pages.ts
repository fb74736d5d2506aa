/** Memory that is kept for later use without its pages. */
import type { Handle } from './api.ts';
import { libc } from './libc.ts';

const PAGE_BYTES = 4096n;
const MADV_DONTNEED = 4;

let advise: ((address: Handle, bytes: number, advice: number) => number) | null | undefined;

/**
 * Lets go of the whole pages in a range; they come back as zeros when they are written again. Only Linux does this at
 * once; elsewhere nothing happens, and the memory stays as large as it once was.
 */
export function discardPages(address: Handle, bytes: number): void {
  advise ??= process.platform === 'linux' ? libc().func('int madvise(void *, size_t, int)') : null;
  if (advise === null) return;
  const first = ((address + PAGE_BYTES - 1n) / PAGE_BYTES) * PAGE_BYTES;
  const end = ((address + BigInt(bytes)) / PAGE_BYTES) * PAGE_BYTES;
  if (end > first) advise(first, Number(end - first), MADV_DONTNEED);
}
