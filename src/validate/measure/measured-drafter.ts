import { openCheckpoint } from '../../checkpoint/checkpoint.ts';
import { type ReadDflashOptions, readDflashConfig } from '../../drafter/dflash/dflash-config.ts';
import { DflashDrafter } from '../../drafter/dflash/dflash-drafter.ts';
import { ownTables } from '../../drafter/dflash/dflash-weights.ts';
import { readKeptTokens } from '../../drafter/dflash/kept-tokens.ts';
import type { Drafter } from '../../drafter/drafter.ts';

/** A drafter and what is needed to read its distributions. */
export interface MeasuredDrafter {
  readonly name: string;
  readonly drafter: Drafter;
  /** Target ids of the rows of its logits; null: rows are target ids. */
  readonly keptTokens: Int32Array | null;
}

/** Reads what does not depend on the taps, of a config that is checked where the drafter is loaded. */
export const ANY_CONFIG: ReadDflashOptions = { allowUnclaimed: true, finalTap: 'pre' };

/** @param folder of the drafter, where it has one */
export async function measuredDrafter(name: string, drafter: Drafter, folder: string | null): Promise<MeasuredDrafter> {
  if (folder === null || !(drafter instanceof DflashDrafter)) return { name, drafter, keptTokens: null };
  const config = readDflashConfig(folder, ANY_CONFIG);
  const checkpoint = await openCheckpoint(folder);
  return { name, drafter, keptTokens: await readKeptTokens(folder, config, checkpoint, ownTables(config, checkpoint)) };
}

/** Logits behind the drafts of the last proposal, [draft tokens, rows], request after request; null where a drafter has none. */
export function draftLogits(drafter: Drafter): { readonly data: Float32Array; readonly rows: number } | null {
  if (!(drafter instanceof DflashDrafter) || drafter.activations === null) return null;
  const { data, shape } = drafter.activations.logits;
  return { data, rows: shape[1] as number };
}
