import { describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { post } from '../../support/server-requests.ts';

async function logOf(body: object, options: ServerFixtureOptions = {}) {
  const { options: app, log } = createServerFixture(options);
  const response = await post(createApp(app), '/v1/completions', body, { headers: { 'x-request-id': 'id-1' } });
  await response.text();
  return log;
}

describe('the access log', () => {
  const fixed = { requestId: 'id-1', transport: 'http', method: 'POST', path: '/v1/completions' };

  test.each([false, true])('has one line for an answer (stream: %s)', async (stream) => {
    expect(await logOf({ prompt: 'a secret', max_tokens: 23, temperature: 0, stream })).toEqual([
      {
        level: 'info',
        message: 'request',
        fields: {
          ...fixed,
          status: 200,
          // The prompt's step and six rounds with a draft, of 10 and 12 ms; the last token needed none.
          durationMs: 10 + 6 * 12 + 10,
          promptTokens: 8,
          completionTokens: 23,
          drafter: 'oracle',
          acceptanceLength: 3.5,
          noDraft: 'near-max-tokens',
        },
      },
    ]);
  });

  test('says why speculation did not run', async () => {
    const [line] = await logOf({ prompt: 'x', max_tokens: 3, speculative: false });
    expect(line?.fields).toMatchObject({ drafter: 'none', acceptanceLength: null, noDraft: 'disabled-by-request' });
  });

  test('says what the drafter said when it failed', async () => {
    const script = () => ({ text: 'abcdefgh', accepts: [1], drafterFailsAt: 1 });
    const [line] = await logOf({ prompt: 'x', max_tokens: 6 }, { engine: { script } });
    expect(line?.fields).toMatchObject({
      noDraft: 'drafter-failed,near-max-tokens',
      drafterError: 'the scripted drafter failed',
    });
  });

  test('has one line for a refusal, with its code', async () => {
    expect(await logOf({ prompt: 'x', foo: 1 })).toEqual([
      { level: 'info', message: 'request', fields: { ...fixed, status: 400, durationMs: 0, errorCode: 'unknown_parameter' } },
    ]);
  });

  test('tells of health checks and scrapes at debug, unless they fail', async () => {
    for (const [path, state, level] of [
      ['/ready', 'ready', 'debug'],
      ['/metrics', 'ready', 'debug'],
      ['/ready', 'draining', 'info'],
      ['/v1/models', 'ready', 'info'],
    ] as const) {
      const { options, log } = createServerFixture({ status: (engine) => ({ state, engine }) });
      await createApp(options).request(path);
      expect([path, state, ...log.map((line) => line.level)]).toEqual([path, state, level]);
    }
  });

  test('and the reason of a failure have the id of the request on each line', async () => {
    const script = () => ({ text: 'abc', failsAt: { step: 1, error: new Error('boom') } });
    const log = await logOf({ prompt: 'x' }, { engine: { script } });
    expect(log.map(({ level, message, fields }) => [level, message, fields['requestId']])).toEqual([
      ['error', 'request failed', 'id-1'],
      ['info', 'request', 'id-1'],
    ]);
    expect(log[0]?.fields).toMatchObject({ code: 'internal', error: { message: 'boom' } });
  });

  test('holds no word of prompt, answer or key', async () => {
    const log = await logOf({ prompt: 'secret words' }, { engine: { script: () => ({ text: 'private words' }) } });
    expect(JSON.stringify(log)).not.toMatch(/secret|private/);
  });
});
