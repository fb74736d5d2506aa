/** `GET /v1/drafters`: what is in force per drafter, and what has come of it; `POST /v1/drafters/{name}/load`: another one. */
import type { Hono } from 'hono';
import { z } from 'zod';
import type { AcceptanceCounts } from '../../core/acceptance-tally.ts';
import type { MeanEstimate } from '../../core/clustered-mean.ts';
import type { DrafterStatus, ShadowStatus, SwapRecord } from '../../engine/engine.ts';
import type { AppEnv } from '../app-env.ts';
import type { GenerationService } from '../generation-service.ts';
import { HttpError } from '../http-error.ts';
import { readJsonBody } from '../read-json-body.ts';
import { parseRequest } from '../schemas/parse-request.ts';
import { namedDrafter } from './named-drafter.ts';

/** Each arm of a split has requests of its own. */
const UNPAIRED = 'unpaired: drafters served different requests; compare with shadow drafting for the same prefixes';

export interface DrafterRouteOptions {
  readonly service: GenerationService;
  /** Whether drafters may be replaced. */
  readonly allowSwap: boolean;
  readonly maxBodyBytes: number;
}

export const loadBody = z.strictObject({
  path: z.string().min(1).max(4096).describe('the path of a drafter, from 1 to 4096 characters'),
});

/** Registers both routes. */
export function addDrafterRoutes(app: Hono<AppEnv>, { service, allowSwap, maxBodyBytes }: DrafterRouteOptions): void {
  app.post('/v1/drafters/:name/load', async (context) => {
    const engine = service.readyEngine();
    if (!allowSwap) {
      throw new HttpError(
        403,
        'Expected a server that replaces drafters, got one without; start it with --allow-drafter-swap and --api-key',
        { details: { code: 'not_allowed' } },
      );
    }
    const { path } = parseRequest(loadBody, await readJsonBody(context.req.raw, maxBodyBytes));
    const { name } = namedDrafter(engine, context.req.param('name'));
    return context.json(swapCard(await engine.loadDrafter(name, path)));
  });
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
    swaps: status.swaps.map(swapCard),
  };
}

function swapCard({ drafter, path, time, state, before, after, reason }: SwapRecord) {
  return {
    drafter,
    path,
    time,
    state,
    accepted_tokens_before: estimate(before),
    accepted_tokens_after: estimate(after),
    reason,
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
