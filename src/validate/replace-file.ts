import { renameSync, writeFileSync } from 'node:fs';

/** Writes a file at once: whoever reads it, the next start included, finds the old one or the new one. */
export function replaceFile(file: string, content: string): void {
  writeFileSync(`${file}.part`, content);
  renameSync(`${file}.part`, file);
}
