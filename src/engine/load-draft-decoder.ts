import type { DraftDecoder } from '../drafter/draft-model/draft-decoder.ts';
import { readModelConfig } from '../target/hf-config.ts';
import { type LoadTargetOptions, loadTarget } from '../target/load-target.ts';

/**
 * Loads a model that drafts as a target is loaded. Where it was made for fewer positions than the target, it drafts up to
 * these.
 * @throws AppError naming what cannot be loaded and why
 */
export async function loadDraftDecoder(
  options: Omit<LoadTargetOptions, 'config' | 'taps' | 'maxContext'> & { readonly maxContext: number },
): Promise<DraftDecoder> {
  const config = readModelConfig(options.folder);
  const maxContext = Math.min(options.maxContext, config.spec.maxPositions);
  const { target } = await loadTarget({ ...options, config, maxContext, taps: [] });
  return target;
}
