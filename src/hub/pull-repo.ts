/** Fetches a model from a hub into a folder. */
import { mkdir } from 'node:fs/promises';
import { AppError } from '../core/app-error.ts';
import { downloadFile } from './download-file.ts';
import { HubClient, type HubFile, type HubOptions, unreachable } from './hub-client.ts';
import type { HubRepo } from './hub-repo.ts';
import { putInPlace } from './put-in-place.ts';
import { wantedFiles } from './wanted-files.ts';

export interface PullOptions {
  readonly hub: HubOptions;
  readonly repo: HubRepo;
  /** Made if absent. */
  readonly folder: string;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
  /** Pause before a broken connection is tried again, in ms. */
  readonly retryDelayMs?: number;
}

export interface PulledRepo {
  /** The commit that the revision stood for. */
  readonly commit: string;
  readonly files: readonly HubFile[];
  readonly bytes: number;
}

/** Attempts at one file that may fail one after the other without bringing anything new. */
const ATTEMPTS = 4;
const RETRY_DELAY_MS = 1000;

/**
 * Makes `folder` hold the weights, configuration and tokenizer of a repository, every file with the digest that the hub
 * states. What is there already is kept; what was begun is gone on with; what an earlier pull brought and this commit does
 * not have is removed. Nothing of it is executed. Files change when all have been fetched, so that until then the folder
 * holds what it held before; takes as much space as both.
 *
 * @throws AppError `unavailable` when the hub cannot be reached, `invalid_config` when there is no such repository or it may
 *   not be read, `invalid_checkpoint` when it has no weights that can be used or sends others than it stated, `aborted`
 */
export async function pullRepo(options: PullOptions): Promise<PulledRepo> {
  const { repo, folder, signal } = options;
  const client = new HubClient(options.hub);
  const commit = await client.commitOf(repo, signal);
  const files = wantedFiles(await client.files(repo, commit, signal), repo.name);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  await mkdir(folder, { recursive: true });
  let done = 0;
  const onBytes = (count: number) => {
    done += count;
    options.onProgress?.(done, bytes);
  };
  const parts = new Map<string, string>();
  for (const file of files) {
    const begun = done;
    let furthest = done;
    for (let attempt = 1; ; attempt++) {
      try {
        const request = (fromByte: number) => client.open(repo, commit, file.path, fromByte, signal);
        const part = await downloadFile({ file, folder, request, onBytes });
        if (part !== null) parts.set(file.path, part);
        break;
      } catch (error) {
        const lost = connectionLost(error, options);
        if (done > furthest) attempt = 1;
        if (lost === null || attempt >= ATTEMPTS) throw lost ?? error;
        furthest = Math.max(furthest, done);
        // What there is of it lies in the part file, and is counted again from there.
        done = begun;
        await new Promise((resolve) => setTimeout(resolve, options.retryDelayMs ?? RETRY_DELAY_MS));
      }
    }
  }
  await putInPlace({ folder, repo, commit, files, parts });
  return { commit, files, bytes };
}

/** The error of a connection that broke, which is worth another attempt; null for any other error. */
function connectionLost(error: unknown, { hub, signal }: PullOptions): AppError | null {
  if (signal?.aborted) return null;
  if (error instanceof AppError) return error.code === 'unavailable' ? error : null;
  return error instanceof TypeError ? unreachable(hub.endpoint, error) : null;
}
