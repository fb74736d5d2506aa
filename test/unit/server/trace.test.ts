import { expect, test } from 'vitest';
import type { PhasedRound } from '../../../src/core/round-trace.ts';
import { createApp } from '../../../src/server/app.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';

const TRACE: PhasedRound = {
  position: 3,
  anchor: 97,
  drafted: [
    { token: 98, confidence: 0.9, targetProbability: 0.8, outcome: 'accepted' },
    { token: 99, confidence: 0.5, targetProbability: 0.1, outcome: 'rejected' },
  ],
  emitted: [
    { token: 98, targetProbability: 0.8 },
    { token: 100, targetProbability: 0.7 },
  ],
  rejectedRank: 1,
  end: 'rejected',
  shortBy: 'load',
  phase: 'reasoning',
};
const LINE = {
  round: 0,
  position: 3,
  anchor: { token: 97, text: '<97>' },
  drafted: [
    { token: 98, text: '<98>', confidence: 0.9, targetProbability: 0.8, outcome: 'accepted' },
    { token: 99, text: '<99>', confidence: 0.5, targetProbability: 0.1, outcome: 'rejected' },
  ],
  emitted: [
    { token: 98, text: '<98>', targetProbability: 0.8 },
    { token: 100, text: '<100>', targetProbability: 0.7 },
  ],
  rejectedRank: 1,
  end: 'rejected',
  shortBy: 'load',
  phase: 'reasoning',
};

function setUp(allowTrace: boolean) {
  const { options } = createServerFixture({
    config: { allowTrace },
    engine: { script: () => ({ text: 'abc', trace: [TRACE] }) },
  });
  return createApp(options);
}

test.each(['/v1/completions', '/v1/chat/completions'])('%s tells the rounds of each choice with their text', async (path) => {
  const body = { prompt: 'x', messages: [{ role: 'user', content: 'x' }], n: 2, trace: true };
  const { prompt, messages, ...rest } = body;
  const response = await post(setUp(true), path, path.includes('chat') ? { messages, ...rest } : { prompt, ...rest });
  expect(await response.json()).toMatchObject({
    trace: [
      { choice: 0, ...LINE },
      { choice: 1, ...LINE },
    ],
  });
});

test.each([undefined, { include_usage: true }])(
  'a stream tells them in its last chunk (stream_options %j)',
  async (stream_options) => {
    const body = { prompt: 'x', stream: true, trace: true, stream_options };
    const response = await post(setUp(true), '/v1/completions', body);
    const chunks = ssePayloads(await response.text());
    expect(chunks.at(-1)?.['trace']).toEqual([{ choice: 0, ...LINE }]);
    expect(chunks.filter(({ trace }) => trace !== undefined)).toHaveLength(1);
  },
);

test('an answer has no trace unless it was asked for', async () => {
  const response = await post(setUp(true), '/v1/completions', { prompt: 'x' });
  expect(await response.json()).not.toHaveProperty('trace');
});

test('a server that was not told to allow it refuses by name', async () => {
  const response = await post(setUp(false), '/v1/completions', { prompt: 'x', trace: true });
  expect(response.status).toBe(400);
  expect(await errorOf(response)).toMatchObject({ param: 'trace', message: expect.stringContaining('--allow-trace') });
  expect((await post(setUp(false), '/v1/completions', { prompt: 'x', trace: false })).status).toBe(200);
});
