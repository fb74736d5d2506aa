import { expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { drafterStatus } from '../../support/drafter-status.ts';
import { createServerFixture } from '../../support/server-fixture.ts';

test.each(['/server_info', '/get_server_info'])('GET %s tells what is in force and the acceptance length', async (path) => {
  const statuses = [drafterStatus(), drafterStatus({ name: 'none' })];
  const { options } = createServerFixture({ engine: { drafterStatus: () => statuses } });
  const app = createApp({ ...options, serverArguments: { port: 8000 } });
  expect(await (await app.request(path)).json()).toEqual({
    version: '9.9.9',
    served_model_name: 'fake-model',
    context_length: 512,
    max_running_requests: 8,
    speculative_algorithm: 'oracle',
    speculative_num_draft_tokens: 4,
    arguments: { port: 8000 },
    internal_states: [{ avg_spec_accept_length: 2, num_running_reqs: 0, num_queue_reqs: 0 }],
  });
});

test('GET /server_info has no acceptance length before the first draft', async () => {
  const app = createApp(createServerFixture({ engine: { info: { drafters: [] } } }).options);
  expect(await (await app.request('/server_info')).json()).toMatchObject({
    speculative_algorithm: null,
    speculative_num_draft_tokens: null,
    arguments: {},
    internal_states: [{ avg_spec_accept_length: null }],
  });
});
