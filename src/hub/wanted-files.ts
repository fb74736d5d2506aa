/** Which files of a repository are fetched: weights, configuration, tokenizer and templates; nothing that could be executed. */
import { AppError } from '../core/app-error.ts';
import type { HubFile } from './hub-client.ts';

const WANTED = /\.(safetensors|json|txt|jinja)$|^tokenizer\.model$/;
/** Weights under their own name, whole or in shards. */
const MODEL_WEIGHTS = /^model(-\d+-of-\d+)?\.safetensors$/;
/** Of a file in the folder itself. */
export const PLAIN_NAME = /^[A-Za-z0-9][\w.+-]*$/;
/** What a drafter was trained with in place of a row of the embedding table. */
const MASK_VECTOR = /^mask_embedding\.\w+$/;

/**
 * @throws AppError `invalid_checkpoint` when a name would lead out of the folder, there are no weights among the files, or
 *   some of them would be missed without a word: a drafter runs without its mask vector, and drafts badly
 */
export function wantedFiles(files: readonly HubFile[], repo: string): HubFile[] {
  const escaping = files.find(({ path }) => /(^|[/\\])\.\.([/\\]|$)|^[/\\]|\\|\0|^[A-Za-z]:/.test(path));
  if (escaping !== undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `Expected file names inside the folder from ${repo}, got ${JSON.stringify(escaping.path)}; do not use this repository`,
    );
  }
  const vector = files.find(({ path }) => MASK_VECTOR.test(path));
  if (vector !== undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `Expected a drafter whose mask is a token of the embedding table in ${repo}, got one with a vector in ${vector.path}, which is not supported; choose another drafter`,
    );
  }
  const wanted = files.filter(({ path }) => WANTED.test(path) && PLAIN_NAME.test(path));
  // Some repositories have the same weights a second time under another name.
  const hasModel = wanted.some(({ path }) => MODEL_WEIGHTS.test(path));
  const chosen = wanted.filter(({ path }) => !path.endsWith('.safetensors') || !hasModel || MODEL_WEIGHTS.test(path));
  if (chosen.some(({ path }) => path.endsWith('.safetensors'))) return chosen;
  const pickle = files.find(({ path }) => /\.(bin|pt|pth|ckpt)$/.test(path))?.path;
  throw new AppError(
    'invalid_checkpoint',
    `Expected safetensors weights in ${repo}, got ${pickle === undefined ? 'none' : `the pickle file ${pickle}, which is never opened`}; choose a repository with safetensors`,
  );
}
