/** `GET /v1/drafters`: what is in force per drafter, and what has come of it. */
import type { Hono } from 'hono';
import type { AcceptanceCounts } from '../../core/acceptance-tally.ts';
import type { MeanEstimate } from '../../core/clustered-mean.ts';
import type { DrafterStatus, ShadowStatus } from '../../engine/engine.ts';
import type { AppEnv } from '../app-env.ts';
import type { GenerationService } from '../generation-service.ts';

/** Each arm of a split has requests of its own. */
const UNPAIRED = 'unpaired: drafters served different requests; compare with shadow drafting for the same prefixes';

/** Registers the route. */
export function addDrafterRoutes(app: Hono<AppEnv>, service: GenerationService): void {
  app.get('/v1/drafters', (context) =>
    context.json({
      object: 'list',
      data: service.readyEngine().drafterStatus().map(drafterCard),
      comparison: UNPAIRED,
    }),
  );
}

function drafterCard(status: DrafterStatus) {
  return {
    name: status.name,
    object: 'drafter',
    kind: status.kind,
    taps: status.taps,
    block_draft_tokens: status.blockDraftTokens,
    max_draft_tokens: status.maxDraftTokens,
    length_policy: status.lengthPolicy,
    synthetic: status.synthetic,
    default: status.isDefault,
    weight: status.weight,
    state: status.off === null ? 'on' : 'quarantined',
    off_reason: status.off,
    requests: status.requests,
    statistics: acceptance(status.counts),
    shadow: status.shadow === null ? null : shadowCard(status.shadow),
  };
}

function shadowCard({ failures, lastFailure, counts, paired }: ShadowStatus) {
  return {
    failures,
    last_failure: lastFailure,
    statistics: acceptance(counts),
    paired: paired.map(({ served, difference, positions }) => ({
      served,
      accepted_tokens_difference: estimate(difference),
      per_position: positions.map((position) => ({
        pairs: position.pairs,
        shadow: position.shadow / position.pairs,
        served: position.served / position.pairs,
      })),
    })),
  };
}

function acceptance(counts: AcceptanceCounts) {
  const { numDrafts, proposedPerPos, acceptedPerPos } = counts;
  return {
    num_drafts: numDrafts,
    num_draft_tokens: counts.numDraftTokens,
    num_accepted_tokens: counts.numAcceptedTokens,
    mean_acceptance_length: estimate(counts.acceptanceLength),
    draft_acceptance_rate: counts.numDraftTokens === 0 ? null : counts.numAcceptedTokens / counts.numDraftTokens,
    per_position: acceptedPerPos.map((count) => count / numDrafts),
    per_position_proposed: acceptedPerPos.map((count, place) => count / proposedPerPos[place]!),
    num_accepted_per_position: acceptedPerPos,
    num_proposed_per_position: proposedPerPos,
    no_draft_rounds: counts.noDraft,
    shortened_rounds: counts.shortened,
  };
}

function estimate(value: MeanEstimate | null) {
  return value === null
    ? null
    : { value: value.mean, interval_95: value.interval, rounds: value.count, ended_requests: value.requests };
}
