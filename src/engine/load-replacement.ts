/** Loads a drafter that takes the place of another one while the engine runs. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import { AppError } from '../core/app-error.ts';
import type { LengthPolicy } from '../decode/draft-length/length-policy.ts';
import type { DrafterContext, DrafterSource } from '../drafter/drafter-context.ts';
import { drafterRefused } from './drafter-refused.ts';
import type { ServedDrafter } from './served-drafter.ts';

export interface ReplacementContext {
  /** Real paths of the folders of which drafters must lie in one; relative paths are of the first. */
  readonly folders: readonly string[];
  /** Layers that the target's graph shows. */
  readonly taps: readonly number[];
  /** @param name of the drafter whose place it takes */
  readonly source: (path: string, name: string) => DrafterSource | null;
  readonly context: DrafterContext;
  /** A fresh policy of the kind that the name has. */
  readonly lengths: (name: string) => LengthPolicy;
}

/**
 * @param freeBytes memory for its weights
 * @throws AppError `invalid_request` when it cannot be loaded or does not fit
 */
export async function loadReplacement(
  { folders, taps, source, context, lengths }: ReplacementContext,
  replaced: ServedDrafter,
  path: string,
  freeBytes: number,
): Promise<ServedDrafter> {
  const chosen = confined(folders, path);
  const { name, draftTokens } = replaced;
  try {
    const found = source(chosen, name);
    if (found === null) throw drafterRefused(`Expected a drafter, got ${path}, which is none`);
    const missing = found.taps.filter((tap) => !taps.includes(tap));
    if (missing.length > 0) {
      throw drafterRefused(
        `Expected a drafter that taps some of the layers ${list(taps)}, which this server's graph shows, got one that taps ` +
          `${list(found.taps)}; start a server with it to serve it`,
      );
    }
    const weightBytes = (await found.weightBytes?.(context.format)) ?? 0;
    if (weightBytes > freeBytes) {
      throw drafterRefused(
        `Expected a drafter whose weights take at most ${Math.max(freeBytes, 0)} bytes, which caches and loaded drafters leave ` +
          `of the memory, got ${weightBytes}; wait until the last swap is decided and its requests have ended, or start the ` +
          'server with a lower --kv-cache-bytes or --prefix-cache-bytes',
      );
    }
    const drafter = await found.load(context);
    if (drafter.kind !== replaced.drafter.kind || drafter.maxDraftTokens < draftTokens) {
      await drafter[Symbol.asyncDispose]();
      throw drafterRefused(
        `Expected a ${replaced.drafter.kind} drafter for drafts of ${draftTokens} tokens, as ${name} is served, got a ` +
          `${drafter.kind} drafter for ${drafter.maxDraftTokens}; start a server with it to serve it`,
      );
    }
    return { name, drafter, folder: chosen, weightBytes, draftTokens, lengths: lengths(name) };
  } catch (error) {
    throw error instanceof AppError ? drafterRefused(error.message, error) : error;
  }
}

/** Links are followed before the folder is compared, so that none leads out of it. */
function confined(folders: readonly string[], path: string): string {
  const wanted = resolve(folders[0] ?? '', path);
  const real = existsSync(wanted) ? realpathSync(wanted) : null;
  if (real !== null && folders.some((folder) => real.startsWith(folder + sep)) && statSync(real).isDirectory()) return real;
  throw drafterRefused(`Expected a folder inside the drafter folder of this server, got ${JSON.stringify(path)}`);
}

function list(layers: readonly number[]): string {
  return layers.length === 0 ? 'none' : layers.toSorted((a, b) => a - b).join(', ');
}
