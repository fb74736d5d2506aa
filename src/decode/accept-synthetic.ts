import type { TokenId } from '../core/token.ts';
import { type Acceptance, accept } from './accept.ts';

/**
 * In place of the accept rule, for capacity tests: the first `kept` draft tokens are emitted whatever the target says,
 * then its own choice. The text is worth nothing; whoever serves it must say so.
 * @param draft stand-ins
 * @param choose the target's choice behind the first `index` of them
 * @param emit takes a token; true when the answer ends with it
 */
export function acceptSynthetic(
  draft: readonly TokenId[],
  kept: number,
  choose: (index: number) => TokenId,
  emit: (token: TokenId) => boolean,
): Acceptance {
  const standIns = draft.slice(0, kept);
  const acceptance = accept(standIns, (index) => standIns[index] ?? choose(index), emit);
  const refused = acceptance.accepted === kept && acceptance.emitted > kept && kept < draft.length;
  return { ...acceptance, evaluated: acceptance.accepted + (refused ? 1 : 0) };
}
