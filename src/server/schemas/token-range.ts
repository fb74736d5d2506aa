import type { TokenId } from '../../core/token.ts';
import type { EngineInfo } from '../../engine/engine.ts';
import { fieldError } from './parse-request.ts';

/** @throws AppError `invalid_request` about the first id that is no row of the model's logits. */
export function checkTokenRange(param: string, ids: Iterable<TokenId>, { vocabSize }: EngineInfo): void {
  for (const id of ids) if (id >= vocabSize) throw fieldError(param, `token ids from 0 to ${vocabSize - 1}`, id);
}
