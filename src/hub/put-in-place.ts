/** Changes a folder to the files of a commit that have been fetched, and notes what it was made from. */
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { UNFINISHED_PULL_FILE } from '../core/unfinished-pull.ts';
import { PART_NAME } from './download-file.ts';
import type { HubFile } from './hub-client.ts';
import type { HubRepo } from './hub-repo.ts';
import { PLAIN_NAME } from './wanted-files.ts';

export const SOURCE_FILE = '.blockdraft-source.json';

const filesSchema = z.looseObject({ files: z.array(z.looseObject({ path: z.string().regex(PLAIN_NAME) })) });

export interface FetchedRepo {
  readonly folder: string;
  readonly repo: HubRepo;
  readonly commit: string;
  readonly files: readonly HubFile[];
  /** The whole content of each file that is not in its place, by name. */
  readonly parts: ReadonlyMap<string, string>;
}

/**
 * Moves parts to their places, and removes what earlier pulls into the folder left there and this commit does not have:
 * weights in one file would be taken before the shards that follow them. Files that were not pulled stay. While this goes
 * on, and from then on when it breaks off, the folder has {@link UNFINISHED_PULL_FILE}.
 */
export async function putInPlace({ folder, repo, commit, files, parts }: FetchedRepo): Promise<void> {
  const mark = join(folder, UNFINISHED_PULL_FILE);
  const source = join(folder, SOURCE_FILE);
  const current = new Set(files.map(({ path }) => path));
  const earlier = [...(await filesIn(source)), ...(await filesIn(mark))];
  // Names of both revisions: whichever is pulled after a break, those of the other must go.
  await writeFile(mark, toJson({ files: [...new Set([...earlier, ...current])].map((path) => ({ path })) }));
  for (const path of earlier) if (!current.has(path)) await rm(join(folder, path), { force: true });
  for (const [path, part] of parts) await rename(part, join(folder, path));
  for (const name of await readdir(folder)) if (PART_NAME.test(name)) await rm(join(folder, name), { force: true });
  await writeFile(
    source,
    toJson({
      repo: repo.name,
      revision: repo.revision,
      commit,
      files: files.map(({ path, digest }) => ({ path, ...digest })),
    }),
  );
  await rm(mark);
}

/** Names that were listed there; none where there is no list. */
async function filesIn(list: string): Promise<string[]> {
  const text = await readFile(list, 'utf8').catch(() => null);
  if (text === null) return [];
  const { data } = filesSchema.safeParse(parsed(text));
  return data?.files.map(({ path }) => path) ?? [];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}
