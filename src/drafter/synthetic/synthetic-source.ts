import { AppError } from '../../core/app-error.ts';
import type { DrafterSource } from '../drafter-context.ts';
import { acceptanceByLength, acceptanceByRates } from './synthetic-acceptance.ts';
import { SyntheticDrafter } from './synthetic-drafter.ts';

const LENGTH = /^length:(\d+(?:\.\d+)?)\/(\d+)$/;

/**
 * Reads `0.8,0.6,0.4`, a rate for each place of a draft, or `length:2.5/5`, an acceptance length for drafts of 5 tokens.
 * @throws AppError `invalid_config` when it is neither
 */
export function syntheticSource(words: string): DrafterSource {
  const [, length, draftTokens] = LENGTH.exec(words) ?? [];
  const rates = words.split(',').map((rate) => (rate.trim() === '' ? Number.NaN : Number(rate)));
  if (length === undefined && rates.some(Number.isNaN)) {
    throw new AppError(
      'invalid_config',
      `Expected acceptance rates as 0.8,0.6,0.4 or a length as length:2.5/5, got ${JSON.stringify(words)}`,
    );
  }
  const acceptance = length === undefined ? acceptanceByRates(rates) : acceptanceByLength(Number(length), Number(draftTokens));
  return { name: 'synthetic', taps: [], load: async () => new SyntheticDrafter(acceptance) };
}
