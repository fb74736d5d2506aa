import type { RowPlan } from './plan-rows.ts';
import type { Draft } from './propose.ts';
import type { Sequence } from './sequence.ts';

/** Drafts that the sequences' rules allow, and when the rules are ready for the rows behind them. */
export interface LookAhead {
  readonly drafts: ReadonlyMap<Sequence, Draft>;
  /** Errors by sequence; they fail nobody else. Never rejects. */
  readonly ready: Promise<ReadonlyMap<Sequence, unknown>>;
}

/**
 * Cuts drafts where a sequence's logits processor would forbid the next token: it could not be chosen, so its row would be
 * computed for nothing. Does not wait for the processors to get ready; the target computes meanwhile.
 */
export async function lookAhead(plans: readonly RowPlan[], proposed: ReadonlyMap<Sequence, Draft>): Promise<LookAhead> {
  const drafts = new Map(proposed);
  const failures = new Map<Sequence, unknown>();
  const ruled = plans.filter(({ sequence, complete }) => complete && sequence.processor !== null);
  await Promise.all(
    ruled.map(async ({ sequence }) => {
      const draft = proposed.get(sequence);
      if (draft === undefined || draft.tokens.length === 0) return;
      try {
        const allowed = (await sequence.processor?.admit?.(draft.tokens)) ?? draft.tokens.length;
        if (allowed === draft.tokens.length) return;
        drafts.set(sequence, { ...draft, tokens: draft.tokens.slice(0, allowed), shortBy: 'grammar' });
      } catch (error) {
        drafts.delete(sequence);
        failures.set(sequence, error);
      }
    }),
  );
  const preparing = ruled.map(async ({ sequence }) => {
    try {
      if (!failures.has(sequence)) await sequence.processor?.prepare?.(drafts.get(sequence)?.tokens ?? []);
    } catch (error) {
      failures.set(sequence, error);
    }
  });
  return { drafts, ready: Promise.all(preparing).then(() => failures) };
}
