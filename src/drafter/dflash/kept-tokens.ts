/** The target ids that a drafter with a reduced head can choose. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import { readIntegers } from '../../checkpoint/read-integers.ts';
import { readJson } from '../../checkpoint/read-json.ts';
import { AppError } from '../../core/app-error.ts';
import type { DflashConfig } from './dflash-config.ts';
import { DRAFT_TO_TARGET, type OwnTables, TARGET_TO_DRAFT } from './dflash-weights.ts';

/** A list of target ids beside the weights: the drafter then chooses among them only, and its head is that much cheaper. */
export const KEPT_TOKENS_FILE = 'draft_tokens.json';

/**
 * Target id of each row of the head, from the checkpoint's own tables or a list beside them; null: rows are target ids.
 * @throws AppError `incompatible_drafter` when they contradict the config, each other or the target's vocabulary
 */
export async function readKeptTokens(
  folder: string,
  config: DflashConfig,
  checkpoint: Checkpoint,
  own: OwnTables,
): Promise<Int32Array | null> {
  if (own.ids.length > 0 || config.draftVocab < config.vocab) return fromTables(folder, config, checkpoint, own);
  if (own.head) return null;
  const file = join(folder, KEPT_TOKENS_FILE);
  if (!existsSync(file)) return null;
  return checked(readJson(file, z.array(z.number().int().nonnegative()).min(1)), config.vocab, file);
}

async function fromTables(folder: string, config: DflashConfig, checkpoint: Checkpoint, own: OwnTables): Promise<Int32Array> {
  const { draftVocab, vocab } = config;
  const refuse = (message: string) => new AppError('incompatible_drafter', `${folder}: ${message}`);
  if (!own.ids.includes(DRAFT_TO_TARGET)) {
    throw refuse(
      `expected a tensor ${DRAFT_TO_TARGET}, as draft_vocab_size ${draftVocab} is not vocab_size ${vocab}, got none; fetch the weights again`,
    );
  }
  const offsets = await readIntegers(checkpoint.tensor(DRAFT_TO_TARGET));
  if (offsets.length !== draftVocab) {
    throw refuse(`expected ${DRAFT_TO_TARGET} of ${draftVocab}, as draft_vocab_size says, got ${offsets.length}`);
  }
  const kept = checked(
    offsets.map((offset, row) => row + offset),
    vocab,
    `${folder}: ${DRAFT_TO_TARGET}`,
  );
  if (own.ids.includes(TARGET_TO_DRAFT)) {
    const flags = await readIntegers(checkpoint.tensor(TARGET_TO_DRAFT));
    const flagged = flags.flatMap((flag, token) => (flag === 0 ? [] : [token]));
    if (flags.length !== vocab || flagged.join() !== kept.join()) {
      throw refuse(
        `expected ${TARGET_TO_DRAFT} of ${vocab} to name the ${kept.length} ids of ${DRAFT_TO_TARGET}, got ${flagged.length} of ${flags.length}; fetch the weights again`,
      );
    }
  }
  return kept;
}

function checked(tokens: readonly number[], vocab: number, where: string): Int32Array {
  const refuse = (message: string) => new AppError('incompatible_drafter', `${where}: ${message}`);
  const outside = tokens.find((token) => token < 0 || token >= vocab);
  if (outside !== undefined) throw refuse(`expected token ids below the target's vocabulary of ${vocab}, got ${outside}`);
  if (new Set(tokens).size !== tokens.length) throw refuse('expected each token id once, found one twice');
  return Int32Array.from(tokens);
}
