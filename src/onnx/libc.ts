/** The C library of this process. */
import koffi from 'koffi';

let library: ReturnType<typeof koffi.load> | undefined;

/** Its handle is kept, as koffi unloads libraries that are garbage-collected, and functions of it would then be gone. */
export function libc(): ReturnType<typeof koffi.load> {
  // Elsewhere than on Windows the process itself links it.
  library ??= koffi.load(process.platform === 'win32' ? 'ucrtbase.dll' : null);
  return library;
}
