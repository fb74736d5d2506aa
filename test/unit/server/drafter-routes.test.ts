import { describe, expect, test } from 'vitest';
import type { GenerateRequest, ShadowStatus, SwapRecord } from '../../../src/engine/engine.ts';
import { createApp } from '../../../src/server/app.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { drafterStatus as status } from '../../support/drafter-status.ts';
import { parsePrometheus, sumOf } from '../../support/prometheus-text.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';

describe('GET /v1/drafters', () => {
  test('tells what is in force, and the counters with their denominators', async () => {
    const off = status({ name: 'b', off: 'b did not answer within 5 ms', isDefault: false, weight: 0.2 });
    const { options } = createServerFixture({ engine: { drafterStatus: () => [status(), off] } });
    const response = await createApp(options).request('/v1/drafters');
    expect(response.status).toBe(200);
    const body = (await response.json()) as { data: object[]; comparison: string };
    expect(body.comparison).toMatch(/^unpaired/);
    expect(body.data[0]).toEqual({
      name: 'a',
      object: 'drafter',
      kind: 'dflash',
      taps: [1, 3],
      block_draft_tokens: 7,
      max_draft_tokens: 3,
      length_policy: 'auto',
      synthetic: false,
      default: true,
      weight: 0.8,
      state: 'on',
      off_reason: null,
      requests: 1,
      statistics: {
        num_drafts: 2,
        num_draft_tokens: 4,
        num_accepted_tokens: 2,
        mean_acceptance_length: { value: 2, interval_95: null, rounds: 2, ended_requests: 1 },
        draft_acceptance_rate: 0.5,
        per_position: [0.5, 0.5, 0],
        per_position_proposed: [0.5, 1, 0],
        num_accepted_per_position: [1, 1, 0],
        num_proposed_per_position: [2, 1, 1],
        no_draft_rounds: { 'near-max-tokens': 1 },
        shortened_rounds: { 'low-confidence': 1 },
      },
      shadow: null,
      swaps: [],
    });
    expect(body.data[1]).toMatchObject({ state: 'quarantined', off_reason: 'b did not answer within 5 ms', weight: 0.2 });
  });

  test('tells what shadow drafting found, as paired differences', async () => {
    const difference = { mean: -0.5, count: 4, requests: 2, interval: [-0.75, -0.25] as const };
    const shadow: ShadowStatus = {
      failures: 1,
      lastFailure: 'no room',
      counts: status().counts,
      paired: [{ served: 'a', difference, positions: [{ pairs: 4, shadow: 1, served: 3 }] }],
    };
    const { options } = createServerFixture({ engine: { drafterStatus: () => [status({ name: 'b', shadow })] } });
    const body = (await (await createApp(options).request('/v1/drafters')).json()) as { data: object[] };
    expect(body.data[0]).toMatchObject({
      shadow: {
        failures: 1,
        last_failure: 'no room',
        statistics: { num_drafts: 2 },
        paired: [
          {
            served: 'a',
            accepted_tokens_difference: { value: -0.5, interval_95: [-0.75, -0.25], rounds: 4, ended_requests: 2 },
            per_position: [{ pairs: 4, shadow: 0.25, served: 0.75 }],
          },
        ],
      },
    });
  });

  test('wants a key where keys are set, an engine, and GET', async () => {
    const { options } = createServerFixture({ config: { apiKeys: ['secret'] } });
    const app = createApp(options);
    expect((await app.request('/v1/drafters')).status).toBe(401);
    expect((await app.request('/v1/drafters', { headers: { authorization: 'Bearer secret' } })).status).toBe(200);
    const loading = createServerFixture({ status: () => ({ state: 'loading' }) });
    expect((await createApp(loading.options).request('/v1/drafters')).status).toBe(503);
    const refused = await post(createApp(createServerFixture().options), '/v1/drafters', {});
    expect(refused.status).toBe(405);
    expect(await errorOf(refused)).toMatchObject({ code: 'method_not_allowed' });
  });
});

describe('POST /v1/drafters/{name}/load', () => {
  const record: SwapRecord = {
    id: 0,
    drafter: 'a',
    path: 'step-200',
    time: '2030-01-01T00:00:00.000Z',
    state: 'watching',
    before: { mean: 2, count: 4, requests: 2, interval: [1, 3] },
    after: null,
    reason: null,
  };
  const card = {
    drafter: 'a',
    path: 'step-200',
    time: record.time,
    state: 'watching',
    accepted_tokens_before: { value: 2, interval_95: [1, 3], rounds: 4, ended_requests: 2 },
    accepted_tokens_after: null,
    reason: null,
  };
  const calls: string[][] = [];
  const setUp = (config: Partial<ServerConfig>) => {
    calls.length = 0;
    const loadDrafter = (...call: [string, string]) => {
      calls.push(call);
      return record;
    };
    const { options } = createServerFixture({
      config,
      engine: { loadDrafter, drafterStatus: () => [status({ swaps: [record] })] },
    });
    return createApp(options);
  };
  const allowed = { allowDrafterSwap: true, apiKeys: ['k'] };
  const headers = { authorization: 'Bearer k' };
  const path = '/v1/drafters/a/load';

  test('asks the engine, and the history is told', async () => {
    const app = setUp(allowed);
    const response = await post(app, path, { path: 'step-200' }, { headers });
    expect([response.status, await response.json()]).toEqual([200, card]);
    expect(calls).toEqual([['a', 'step-200']]);
    const body = (await (await app.request('/v1/drafters', { headers })).json()) as { data: { swaps: object[] }[] };
    expect(body.data[0]?.swaps).toEqual([card]);
  });

  test.each([
    [401, allowed, {}],
    [403, { apiKeys: ['k'] }, headers],
    [403, { allowDrafterSwap: true }, {}],
  ])('is %i with %j', async (expected, config, sent) => {
    expect((await post(setUp(config), path, { path: 'x' }, { headers: sent })).status).toBe(expected);
    expect(calls).toEqual([]);
  });

  test('knows no drafter of another name', async () => {
    const response = await post(setUp(allowed), '/v1/drafters/c/load', { path: 'x' }, { headers });
    expect([response.status, await response.json()]).toMatchObject([
      404,
      { error: { param: 'name', code: 'drafter_not_found' } },
    ]);
    expect(calls).toEqual([]);
  });

  test.each([{}, { path: '' }, { path: 3 }, { path: 'x', force: true }])('refuses the body %j', async (body) => {
    expect((await post(setUp(allowed), path, body, { headers })).status).toBe(400);
    expect((await setUp(allowed).request(path, { headers })).status).toBe(405);
    expect(calls).toEqual([]);
  });
});

test('/metrics counts by drafter, and the counters of all drafters add up to the totals', async () => {
  const drafters = ['oracle', 'second'].map((name) => ({ name, kind: 'oracle', maxDraftTokens: 4, synthetic: false }));
  const { options } = createServerFixture({ engine: { info: { drafters } }, vllmAliases: true });
  const app = createApp(options);
  for (const drafter of ['oracle', 'second', 'second', 'none']) {
    await post(app, '/v1/completions', { prompt: 'xyz', max_tokens: 9, temperature: 0, drafter });
  }
  const samples = parsePrometheus(await (await app.request('/metrics')).text());
  const count = (name: string, labels = {}) => sumOf(samples, `blockdraft:${name}`, labels);
  expect(['oracle', 'second', 'none'].map((drafter) => count('drafter_requests_total', { drafter }))).toEqual([1, 2, 1]);
  for (const [own, total] of [
    ['drafter_drafts_total', 'spec_decode_num_drafts_total'],
    ['drafter_draft_tokens_total', 'spec_decode_num_draft_tokens_total'],
    ['drafter_accepted_tokens_total', 'spec_decode_num_accepted_tokens_total'],
    ['drafter_accepted_tokens_per_pos_total', 'spec_decode_num_accepted_tokens_per_pos_total'],
    ['drafter_proposed_tokens_per_pos_total', 'spec_decode_num_proposed_tokens_per_pos_total'],
  ] as const) {
    expect(count(own, { drafter: 'oracle' }), own).toBeGreaterThan(0);
    expect(count(own, { drafter: 'second' }), own).toBe(2 * count(own, { drafter: 'oracle' }));
    expect(count(own), own).toBe(count(total));
  }
  expect([...samples.keys()].some((series) => series.startsWith('vllm:drafter'))).toBe(false);
});

test('/metrics counts shadow drafts, and pairs cut to the shorter draft', async () => {
  const { metrics } = createServerFixture();
  const served = { drafted: 2, evaluated: 2, accepted: 2, emitted: 3 };
  const scored = { drafted: 4, evaluated: 4, accepted: 3, emitted: 4, shadow: 'b', drafter: 'a' };
  const shadows = [
    { ...scored, served },
    { ...scored, served: { drafted: 0, evaluated: 0, accepted: 0, emitted: 1 } },
  ];
  const step = { durationMs: 1, draftMs: 0, sequences: 1, promptRows: 0, decodeRows: 3, emitted: 3, rounds: [] };
  metrics.onStep({ ...step, shadows });
  metrics.onShadowFailure?.('b', 'no room');
  const samples = parsePrometheus(await metrics.render());
  const count = (name: string, labels = {}) => sumOf(samples, `blockdraft:shadow_${name}`, { drafter: 'b', ...labels });
  expect(['drafts_total', 'draft_tokens_total', 'accepted_tokens_total', 'failures_total'].map((name) => count(name))).toEqual([
    2, 8, 6, 1,
  ]);
  const paired = ['pairs_total', 'paired_accepted_tokens_total', 'paired_served_accepted_tokens_total'];
  expect(paired.map((name) => count(name, { served: 'a' }))).toEqual([1, 2, 2]);
});

test('/metrics counts audits by outcome', async () => {
  const { metrics } = createServerFixture();
  const asked = { id: 'r' } as GenerateRequest;
  const served = { tokens: [], ending: { reason: 'length', stopReason: null } } as const;
  for (const outcome of ['equal', 'equal', 'different'] as const) {
    metrics.onAudit?.({ request: asked, drafter: 'a', outcome, differsAt: null, served, plain: null, error: null });
  }
  const samples = parsePrometheus(await metrics.render());
  const count = (outcome: string) => sumOf(samples, 'blockdraft:self_audits_total', { outcome });
  expect([count('equal'), count('different')]).toEqual([2, 1]);
});
