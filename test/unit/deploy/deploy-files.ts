/** The files of deploy/, as tests read them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseAllDocuments } from 'yaml';

export const ROOT = join(import.meta.dirname, '../../..');
export const DEPLOY = join(ROOT, 'deploy');

export interface Manifest {
  /** Relative to deploy/. */
  readonly file: string;
  // biome-ignore lint/suspicious/noExplicitAny: the schemas say what is in it
  readonly object: any;
}

export function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Every YAML document below deploy/kubernetes. */
export function manifests(): readonly Manifest[] {
  const files = readdirSync(join(DEPLOY, 'kubernetes'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.yaml'))
    .toSorted()
    .flatMap((file) => {
      const path = join(DEPLOY, 'kubernetes', file);
      return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
        if (document.errors.length > 0) throw new Error(`${file}: ${document.errors[0]!.message}`);
        return { file: relative(DEPLOY, path), object: document.toJS() };
      });
    });
}

/** The only manifest of a kind. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export function only(kind: string): any {
  const found = manifests().filter(({ object, file }) => object.kind === kind && !file.includes('cuda/'));
  if (found.length !== 1) throw new Error(`Expected one ${kind}, got ${found.map(({ file }) => file)}`);
  return found[0]!.object;
}
