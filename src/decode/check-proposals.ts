import type { TokenId } from '../core/token.ts';
import type { Drafter, DraftRequest, Proposal } from '../drafter/drafter.ts';

/**
 * Keeps a drafter's mistakes out of the step, which they would spoil for all who take part in it.
 * @throws Error that says what the drafter did
 */
export function checkProposals(
  { kind }: Drafter,
  requests: readonly DraftRequest[],
  proposals: readonly Proposal[],
  vocabSize: number,
): void {
  if (proposals.length !== requests.length) {
    throw new Error(`Expected ${requests.length} proposals from ${kind}, got ${proposals.length}`);
  }
  const isKnown = (token: TokenId) => Number.isInteger(token) && token >= 0 && token < vocabSize;
  for (const [i, { tokens }] of proposals.entries()) {
    const { budget } = requests[i] as DraftRequest;
    if (tokens.length > budget) throw new Error(`Expected at most ${budget} draft tokens from ${kind}, got ${tokens.length}`);
    const unknown = tokens.find((token) => !isKnown(token));
    if (unknown !== undefined) throw new Error(`Expected draft tokens of 0 to ${vocabSize - 1} from ${kind}, got ${unknown}`);
  }
}
