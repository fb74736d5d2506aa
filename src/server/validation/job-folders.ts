/** Where jobs may read and write: paths of a request stay below a folder that the server was started with. */
import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { HttpError } from '../http-error.ts';

export interface JobFolders {
  /** Real path of the folder that jobs write into, and read what earlier ones wrote; null: they write no files. */
  readonly output: string | null;
  /** Real path of the folder that training runs lie in; null: none can be watched. */
  readonly runs: string | null;
}

export const NO_JOB_FOLDERS: JobFolders = { output: null, runs: null };

const OPTIONS: Readonly<Record<keyof JobFolders, string>> = { output: '--validation-dir', runs: '--drafter-dir' };

/**
 * @param param field of the body
 * @returns the real path, of something that may not be there yet
 * @throws HttpError 403 without such a folder, or when the path is not below it
 */
export function jobPath(folders: JobFolders, which: keyof JobFolders, param: string, path: string): string {
  const folder = folders[which];
  const option = OPTIONS[which];
  if (folder === null) {
    throw notAllowed(param, `Expected a server with ${option} for ${param}, got one without. Start it with ${option}.`);
  }
  const real = realPath(resolve(folder, path));
  if (real?.startsWith(folder + sep)) return real;
  throw notAllowed(
    param,
    `Expected ${param} to be a path below the folder of ${option}, got ${JSON.stringify(path)}. Correct it.`,
  );
}

/**
 * The same for a folder that is there.
 * @param file that has to be in it; null: any folder will do
 * @throws HttpError as {@link jobPath}, and 404 when there is no such folder
 */
export function jobFolder(
  folders: JobFolders,
  which: keyof JobFolders,
  param: string,
  path: string,
  file: string | null = null,
): string {
  const folder = jobPath(folders, which, param, path);
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isFolder && (file === null || existsSync(join(folder, file)))) return folder;
  const expected = file === null ? 'a folder that is there' : `a folder with ${file}`;
  throw new HttpError(404, `Expected ${param} to be ${expected}, got ${JSON.stringify(path)}. Correct it.`, {
    details: { param, code: 'folder_not_found' },
  });
}

/** Links are followed as far as there is something; null where one leads nowhere, or nothing can be. */
function realPath(wanted: string): string | null {
  try {
    let there = wanted;
    while (lstatSync(there, { throwIfNoEntry: false }) === undefined) there = dirname(there);
    return resolve(realpathSync(there), relative(there, wanted));
  } catch {
    return null;
  }
}

function notAllowed(param: string, message: string): HttpError {
  return new HttpError(403, message, { details: { param, code: 'not_allowed' } });
}
