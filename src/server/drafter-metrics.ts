/** Counters by drafter, under names of this server's own. */
import { Counter, type Registry } from 'prom-client';
import type { ScoredShadow, ServedRound } from '../engine/engine.ts';

export interface DrafterMetrics {
  onRound(round: ServedRound): void;
  onShadow(scored: ScoredShadow): void;
  onShadowFailure(drafter: string): void;
  onSwap(drafter: string, state: string): void;
  /** A request with this drafter has ended. */
  onFinish(drafter: string): void;
}

/** @param prefix of every name */
export function createDrafterMetrics(registry: Registry, prefix: string, model_name: string): DrafterMetrics {
  const counter = (name: string, help: string, ...labels: readonly string[]) =>
    new Counter<string>({
      name: prefix + name,
      help,
      labelNames: ['model_name', 'drafter', ...labels],
      registers: [registry],
    });
  const requests = counter('drafter_requests_total', 'Requests that ended, by the drafter that served them.');
  const drafts = counter('drafter_drafts_total', 'Rounds that verified a draft, by drafter.');
  const draftTokens = counter('drafter_draft_tokens_total', 'Draft tokens handed to verification, by drafter.');
  const accepted = counter('drafter_accepted_tokens_total', 'Draft tokens accepted and emitted, by drafter.');
  const acceptedPerPosition = counter(
    'drafter_accepted_tokens_per_pos_total',
    'Draft tokens accepted and emitted, by drafter and place in the draft (0-based).',
    'position',
  );
  const proposedPerPosition = counter(
    'drafter_proposed_tokens_per_pos_total',
    'Draft tokens handed to verification, by drafter and place in the draft (0-based).',
    'position',
  );
  const shadowDrafts = counter('shadow_drafts_total', 'Shadow drafts that were scored, by the drafter that made them.');
  const shadowTokens = counter('shadow_draft_tokens_total', 'Draft tokens of scored shadow drafts, by drafter.');
  const shadowAccepted = counter(
    'shadow_accepted_tokens_total',
    'Draft tokens of scored shadow drafts that would have been accepted, by drafter.',
  );
  const shadowFailures = counter('shadow_failures_total', 'Requests in which a shadow drafter failed, by drafter.');
  const pairs = counter(
    'shadow_pairs_total',
    'Rounds with a draft of the shadow drafter and of the one that served.',
    'served',
  );
  const pairedShadow = counter(
    'shadow_paired_accepted_tokens_total',
    "The shadow drafter's accepted tokens in pairs cut to the shorter draft.",
    'served',
  );
  const pairedServed = counter(
    'shadow_paired_served_accepted_tokens_total',
    "The serving drafter's accepted tokens in pairs cut to the shorter draft.",
    'served',
  );
  const swaps = counter(
    'drafter_swaps_total',
    'Drafters put in the place of another one (watching), what was decided of them, and those that could not be (failed).',
    'state',
  );
  return {
    onSwap: (drafter, state) => swaps.inc({ model_name, drafter, state }),
    onShadow({ shadow, drafter: server, drafted, accepted: kept, served }) {
      const labels = { model_name, drafter: shadow };
      shadowDrafts.inc(labels);
      shadowTokens.inc(labels, drafted);
      shadowAccepted.inc(labels, kept);
      const length = Math.min(drafted, served.drafted);
      if (length === 0) return;
      pairs.inc({ ...labels, served: server });
      pairedShadow.inc({ ...labels, served: server }, Math.min(kept, length));
      pairedServed.inc({ ...labels, served: server }, Math.min(served.accepted, length));
    },
    onShadowFailure: (drafter) => shadowFailures.inc({ model_name, drafter }),
    onRound({ drafter, drafted, accepted: kept }) {
      if (drafted === 0) return;
      const labels = { model_name, drafter };
      drafts.inc(labels);
      draftTokens.inc(labels, drafted);
      accepted.inc(labels, kept);
      for (let position = 0; position < drafted; position++) {
        proposedPerPosition.inc({ ...labels, position });
        acceptedPerPosition.inc({ ...labels, position }, position < kept ? 1 : 0);
      }
    },
    onFinish: (drafter) => requests.inc({ model_name, drafter }),
  };
}
