/** Counters by drafter, under names of this server's own. */
import { Counter, type Registry } from 'prom-client';
import type { ServedRound } from '../engine/engine.ts';

export interface DrafterMetrics {
  onRound(round: ServedRound): void;
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
  return {
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
