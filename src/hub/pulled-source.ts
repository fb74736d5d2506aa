/** What a pulled folder says it was made from. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { HubFile } from './hub-client.ts';
import type { HubRepo } from './hub-repo.ts';
import { PLAIN_NAME } from './wanted-files.ts';

export const SOURCE_FILE = '.blockdraft-source.json';

const filesSchema = z.looseObject({ files: z.array(z.looseObject({ path: z.string().regex(PLAIN_NAME) })) });

/**
 * Removes what an earlier pull into the folder left there and this commit does not have: weights in one file would be taken
 * before the shards that follow them. Files that were not pulled stay.
 */
export async function removeStaleFiles(folder: string, files: readonly HubFile[]): Promise<void> {
  const current = new Set(files.map(({ path }) => path));
  for (const path of await pulledFiles(folder)) if (!current.has(path)) await rm(join(folder, path), { force: true });
}

/** Names in the folder; none where no pull has ended. */
async function pulledFiles(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, SOURCE_FILE), 'utf8').catch(() => null);
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

export async function writeSource(folder: string, repo: HubRepo, commit: string, files: readonly HubFile[]): Promise<void> {
  const source = {
    repo: repo.name,
    revision: repo.revision,
    commit,
    files: files.map(({ path, digest }) => ({ path, ...digest })),
  };
  await writeFile(join(folder, SOURCE_FILE), `${JSON.stringify(source, null, 1)}\n`);
}
