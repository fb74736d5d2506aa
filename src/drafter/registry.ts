/** From the words of a user to a drafter. To add a built-in one, add its line to `BUILT_IN`. */
import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { folderBytes } from '../checkpoint/folder-bytes.ts';
import type { WeightFormat } from '../checkpoint/weight-plan.ts';
import { AppError } from '../core/app-error.ts';
import { declaredFormat } from './dflash/declared-format.ts';
import { readDflashConfig } from './dflash/dflash-config.ts';
import { type FinalTaps, refuseOtherTap } from './dflash/final-taps.ts';
import { loadDflash } from './dflash/load-dflash.ts';
import { loadDraftModel } from './draft-model/load-draft-model.ts';
import type { DrafterModule, DrafterSource } from './drafter-context.ts';
import { NgramDrafter } from './ngram/ngram-drafter.ts';
import { targetDepth } from './target-depth.ts';

/** What a user says about a checkpoint that it does not say itself. */
export interface CheckpointOptions {
  /** Name that the drafter is served under; null: its own. */
  readonly name?: string | null;
  /** Which output of the target's last layer a drafter was trained on, where it taps that layer. */
  readonly finalTaps?: FinalTaps;
  /** Keys and tensors that nothing uses are no error. */
  readonly allowUnclaimed?: boolean;
}

/** What may stand for a drafter: the name of a kind, or a folder. */
type SourceOf = (targetFolder: string, options: CheckpointOptions) => DrafterSource | null;

const BUILT_IN: Readonly<Record<string, SourceOf>> = {
  none: () => null,
  ngram: (_, { name }) => ({ name: name ?? 'ngram', taps: [], load: async () => new NgramDrafter() }),
  /** The drafter that lies beside its target, under the name that it was asked for by, whatever the target is called. */
  dflash: (targetFolder, options) =>
    drafterFolder(`${resolve(targetFolder)}-dflash`, targetFolder, { ...options, name: options.name ?? 'dflash' }),
};

/**
 * @param chosen a built-in name, or the folder of a DFlash drafter or a small model
 * @returns null for plain decoding
 * @throws AppError `invalid_config` when it is neither, `invalid_checkpoint` when the folder's config cannot be used
 */
export function drafterFromName(chosen: string, targetFolder: string, options: CheckpointOptions = {}): DrafterSource | null {
  const builtIn = Object.hasOwn(BUILT_IN, chosen) ? BUILT_IN[chosen] : undefined;
  if (builtIn !== undefined) return builtIn(targetFolder, options);
  if (!existsSync(chosen)) {
    throw new AppError(
      'invalid_config',
      `Expected a drafter of ${Object.keys(BUILT_IN).join(', ')} or the folder of a drafter, got ${chosen}, which does not exist`,
    );
  }
  return drafterFolder(resolve(chosen), targetFolder, options);
}

/** A folder is what it declares: a DFlash drafter, or else a model that drafts token by token. */
function drafterFolder(folder: string, targetFolder: string, options: CheckpointOptions): DrafterSource {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    throw new AppError(
      'invalid_config',
      `Expected the folder of a DFlash drafter or of a small model, got ${folder}, which is none; name it with --drafter`,
    );
  }
  const name = options.name ?? basename(folder);
  const weightBytes = (format: WeightFormat) => folderBytes(folder, format);
  if (declaredFormat(folder).layout === null) {
    return { name, taps: [], folder, weightBytes, load: (context) => loadDraftModel(folder, context) };
  }
  const { allowUnclaimed = false, finalTaps } = options;
  const ofThisOne = finalTaps?.named.get(name) ?? null;
  const finalTap = ofThisOne ?? finalTaps?.others ?? null;
  const config = readDflashConfig(folder, { allowUnclaimed, finalTap, targetLayers: targetDepth(targetFolder) });
  refuseOtherTap(config, ofThisOne, folder);
  const load: DrafterSource['load'] = (context) => loadDflash({ ...context, folder, config, allowUnclaimed });
  return { name, taps: config.taps, folder, weightBytes, load };
}

/**
 * Runs the user's code: only ever for a path that the user has named for this purpose.
 * @throws AppError `invalid_config` when the module cannot be loaded or does not export what it should
 */
export async function drafterFromModule(path: string): Promise<DrafterSource> {
  const file = resolve(path);
  let module: Partial<DrafterModule>;
  try {
    module = (await import(pathToFileURL(file).href)) as Partial<DrafterModule>;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AppError('invalid_config', `Cannot load the drafter module ${file}: ${reason}`, { cause });
  }
  const { createDrafter, taps = [] } = module;
  if (typeof createDrafter !== 'function') {
    throw new AppError(
      'invalid_config',
      `Expected ${file} to export a function createDrafter, got ${Object.keys(module).join(', ') || 'nothing'}`,
    );
  }
  if (!Array.isArray(taps) || taps.some((tap) => !Number.isInteger(tap) || tap < -1)) {
    throw new AppError(
      'invalid_config',
      `Expected ${file} to export taps as a list of layer indices (-1 for the embedding), got ${JSON.stringify(taps)}`,
    );
  }
  return { name: basename(file).replace(/\.[^.]+$/, ''), taps, load: async (context) => createDrafter(context) };
}
