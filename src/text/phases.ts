/** Which part of an answer a token belongs to. */
import type { Phase } from '../core/round-trace.ts';
import type { TokenId } from '../core/token.ts';
import type { Tokenizer } from './tokenizer.ts';

/** Marks as models with reasoning and tools write them, where they are tokens of their own. */
const MARKS: readonly (readonly [phase: Phase, open: string, close: string])[] = [
  ['reasoning', '<think>', '</think>'],
  ['tool', '<tool_call>', '</tool_call>'],
];

/**
 * @param tokens prompt and answer, as templates open a part of the answer at the end of the prompt
 * @returns the phase of each token; a mark belongs to the part that it opens or closes
 */
export function phasesOf(tokenizer: Pick<Tokenizer, 'tokenId'>, tokens: readonly TokenId[]): readonly Phase[] {
  const opening = new Map<TokenId, Phase>();
  const closing = new Set<TokenId>();
  for (const [phase, open, close] of MARKS) {
    const [first, last] = [tokenizer.tokenId(open), tokenizer.tokenId(close)];
    if (first !== null) opening.set(first, phase);
    if (last !== null) closing.add(last);
  }
  let phase: Phase = 'content';
  return tokens.map((token) => {
    phase = opening.get(token) ?? phase;
    const own = phase;
    if (closing.has(token)) phase = 'content';
    return own;
  });
}
