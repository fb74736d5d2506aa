/** Opens a folder of a small model as a drafter. */
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../checkpoint/read-json.ts';
import { AppError } from '../../core/app-error.ts';
import type { DrafterContext } from '../drafter-context.ts';
import { DraftModelDrafter } from './draft-model-drafter.ts';
import { tokenizerDifference } from './tokenizer-difference.ts';

const count = z.number().int().positive().optional();
const vocabularySchema = z.looseObject({ vocab_size: count, text_config: z.looseObject({ vocab_size: count }).optional() });

/** @throws AppError `incompatible_drafter` when its vocabulary is another one, or it cannot be cut back; whatever loading it throws */
export async function loadDraftModel(folder: string, { target, loadDecoder }: DrafterContext): Promise<DraftModelDrafter> {
  const refuse = (message: string) =>
    new AppError(
      'incompatible_drafter',
      `Expected ${folder} to have the target's vocabulary, but ${message}; choose a model of its family`,
    );
  const config = readJson(join(folder, 'config.json'), vocabularySchema);
  const vocabSize = config.vocab_size ?? config.text_config?.vocab_size;
  if (vocabSize !== undefined && vocabSize !== target.vocabSize) {
    throw refuse(`its vocab_size is ${vocabSize}, the target's is ${target.vocabSize}`);
  }
  const difference = await tokenizerDifference(folder, target.checkpoint.folder);
  if (difference !== null) throw refuse(difference);
  const decoder = await loadDecoder(folder);
  if (decoder.recurrent !== undefined) {
    await decoder[Symbol.asyncDispose]();
    throw new AppError(
      'incompatible_drafter',
      `Expected a draft model with attention in all layers, got ${folder} with a recurrent state, which cannot be cut back to what was accepted; choose another`,
    );
  }
  return new DraftModelDrafter(decoder);
}
