import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as settled } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '../../../src/core/app-error.ts';
import type { DrafterStatus } from '../../../src/engine/engine.ts';
import { createApp } from '../../../src/server/app.ts';
import type { JobFolders } from '../../../src/server/validation/job-folders.ts';
import { ValidationJobs } from '../../../src/server/validation/validation-jobs.ts';
import type {
  ValidationOutcome,
  ValidationProgress,
  ValidationRunner,
  ValidationTask,
} from '../../../src/server/validation/validation-runner.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { errorOf, post, type TestApp } from '../../support/server-requests.ts';

const headers = { authorization: 'Bearer k' };

interface Run {
  readonly task: ValidationTask;
  readonly progress: (progress: ValidationProgress) => void;
  readonly signal: AbortSignal;
  readonly end: (outcome: ValidationOutcome) => void;
  readonly fail: (error: Error) => void;
}

function setUp(apiKeys: readonly string[] = ['k'], folders?: JobFolders) {
  const runs: Run[] = [];
  const runner: ValidationRunner = {
    run: (task, progress, signal) =>
      new Promise((end, fail) => {
        signal.addEventListener('abort', () => fail(new Error('stopped')));
        runs.push({ task, progress, signal, end, fail });
      }),
  };
  const jobs = new ValidationJobs(runner, folders);
  const drafters = [
    { name: 'a', kind: 'dflash', folder: '/models/a' },
    { name: 'b', kind: 'ngram', folder: null },
    { name: 'own', kind: 'module', folder: null },
  ];
  const { options } = createServerFixture({
    config: { apiKeys },
    engine: { drafterStatus: () => drafters as DrafterStatus[] },
  });
  return { app: createApp({ ...options, validation: jobs }), jobs, runs, options };
}

async function job(app: TestApp, id: string) {
  const response = await app.request(`/v1/drafters/jobs/${id}`, { headers });
  return (await response.json()) as Record<string, unknown>;
}

async function start(app: TestApp, path = '/v1/drafters/a/diagnose', body: object = {}) {
  const response = await post(app, path, body, { headers });
  return { response, card: (await response.json()) as { id: string } & Record<string, unknown> };
}

describe('jobs', () => {
  test('run to their result, and tell how far they are', async () => {
    const { app, runs } = setUp();
    const { response, card } = await start(app, '/v1/drafters/a/diagnose', {
      limit: 4,
      prompts: [{ prompt: 'x' }, { prompt: 'y' }],
    });
    expect([response.status, response.headers.get('location')]).toEqual([202, `/v1/drafters/jobs/${card.id}`]);
    expect(card).toMatchObject({ object: 'drafter.job', kind: 'diagnose', drafters: ['a'], status: 'running', progress: null });
    expect(runs[0]?.task).toEqual({
      kind: 'diagnose',
      drafters: [{ name: 'a', kind: 'dflash', folder: '/models/a' }],
      prompts: [{ prompt: 'x' }, { prompt: 'y' }],
      settings: { limit: 4 },
    });
    runs[0]?.progress({ stage: 'Measuring', done: 1, total: 3 });
    expect(await job(app, card.id)).toMatchObject({ status: 'running', progress: { stage: 'Measuring', done: 1, total: 3 } });
    runs[0]?.end({ exitCode: 1, result: { healthy: false } });
    await settled();
    expect(await job(app, card.id)).toMatchObject({
      status: 'succeeded',
      exit_code: 1,
      result: { healthy: false },
      error: null,
    });
    const list = (await (await app.request('/v1/drafters/jobs', { headers })).json()) as { data: object[] };
    expect(list.data).toEqual([expect.objectContaining({ id: card.id, result: null })]);
  });

  test('fail with a reason', async () => {
    const { app, runs } = setUp();
    const { card } = await start(app);
    runs[0]?.fail(new AppError('internal', 'Expected weights, got none'));
    await settled();
    expect(await job(app, card.id)).toMatchObject({ status: 'failed', error: { message: 'Expected weights, got none' } });
  });

  test('run one at a time, and can be cancelled', async () => {
    const { app, runs } = setUp();
    const { card } = await start(app);
    expect((await start(app, '/v1/drafters/b/validate')).response.status).toBe(429);
    const response = await app.request(`/v1/drafters/jobs/${card.id}`, { method: 'DELETE', headers });
    expect(await response.json()).toMatchObject({ id: card.id, status: 'cancelled', error: null, result: null });
    expect(runs[0]?.signal.aborted).toBe(true);
    expect((await start(app)).response.status).toBe(202);
  });

  test('are forgotten when there are too many, and end with the server', async () => {
    const { app, jobs, runs } = setUp();
    const { card } = await start(app);
    for (let i = 0; i < 16; i++) {
      runs.at(-1)?.end({ exitCode: 0, result: {} });
      await settled();
      expect((await start(app)).response.status).toBe(202);
    }
    const gone = await app.request(`/v1/drafters/jobs/${card.id}`, { headers });
    expect([gone.status, (await errorOf(gone)).code]).toEqual([404, 'job_not_found']);
    await jobs.close();
    expect(runs.at(-1)?.signal.aborted).toBe(true);
    expect((await start(app)).response.status).toBe(503);
  });
});

describe('requests', () => {
  test('become options of the command', async () => {
    const { app, runs } = setUp();
    await start(app, '/v1/drafters/b/validate', { temperature: [0, 0.8], draft_tokens: 'auto', min_acceptance_length: 2 });
    expect(runs[0]?.task).toMatchObject({
      kind: 'validate',
      drafters: [{ name: 'b', kind: 'ngram', folder: null }],
      prompts: null,
      settings: { temperature: '0,0.8', draft_tokens: 'auto', min_acceptance_length: 2 },
    });
  });

  test('have variables of the chat template, and prompts that can be told apart', async () => {
    const { app, runs } = setUp();
    const prompts = [{ id: 'a', prompt: 'x' }, { prompt: 'y' }];
    const twice = { prompts: [...prompts, { id: 'line-2', prompt: 'z' }] };
    const refused = await post(app, '/v1/drafters/b/validate', twice, { headers });
    expect([refused.status, (await errorOf(refused)).message]).toEqual([400, expect.stringMatching(/different ids/)]);
    await start(app, '/v1/drafters/b/validate', { prompts, chat_template_kwargs: { enable_thinking: false } });
    expect(runs[0]?.task).toMatchObject({ prompts, settings: { chat_template_kwargs: '{"enable_thinking":false}' } });
  });

  test('compare drafters by name', async () => {
    const { app, runs } = setUp();
    await start(app, '/v1/drafters/compare', { drafters: ['b', 'a'], margin: 0.1 });
    expect(runs[0]?.task.drafters.map(({ name }) => name)).toEqual(['b', 'a']);
    expect(runs[0]?.task.settings).toEqual({ margin: 0.1 });
  });

  test.each([
    ['/v1/drafters/own/record', { out: 'x' }, 400, 'name'],
    ['/v1/drafters/a/record', {}, 400, 'out'],
    ['/v1/drafters/a/record', { out: 'x', taps: [-2] }, 400, 'taps[0]'],
    ['/v1/drafters/b/record', { out: 'x' }, 400, 'taps'],
    ['/v1/drafters/export-hard', { out: 'x' }, 400, 'validation'],
    ['/v1/drafters/watch', { watch: ['a\0b'] }, 400, 'watch[0]'],
    ['/v1/drafters/watch', { watch: ['run'], once: false }, 400, 'once'],
    ['/v1/drafters/b/diagnose', {}, 400, 'name'],
    ['/v1/drafters/a/diagnose', { weights: 'int4' }, 400, 'weights'],
    ['/v1/drafters/a/diagnose', { out: '/etc' }, 400, 'out'],
    ['/v1/drafters/a/diagnose', { prompts: [{ prompt: 'x' }] }, 400, 'prompts'],
    ['/v1/drafters/a/diagnose', { prompts: [{ prompt: 'x' }, { messages: [], prompt: 'y' }] }, 400, 'prompts[1].messages'],
    ['/v1/drafters/a/diagnose', { prompts: [{ prompt: 'x' }, {}] }, 400, 'prompts[1]'],
    ['/v1/drafters/a/validate', { temperature: [0, -1] }, 400, 'temperature[1]'],
    ['/v1/drafters/compare', { drafters: ['a'] }, 400, 'drafters'],
    ['/v1/drafters/compare', { drafters: ['a', 'a'] }, 400, 'drafters'],
    ['/v1/drafters/compare', { drafters: ['a', 'c'] }, 404, 'name'],
    ['/v1/drafters/c/validate', {}, 404, 'name'],
    ['/v1/drafters/own/validate', {}, 400, 'name'],
  ])('%s refuses %j with %i', async (path, body, status, param) => {
    const { app, runs } = setUp();
    const response = await post(app, path, body, { headers });
    expect([response.status, (await errorOf(response)).param]).toEqual([status, param]);
    expect(runs).toEqual([]);
  });

  test('need a key, and a server that lets them', async () => {
    const { app, options } = setUp();
    const path = '/v1/drafters/a/validate';
    expect((await post(app, path, {})).status).toBe(401);
    expect((await post(setUp([]).app, path, {})).status).toBe(403);
    const without = createApp({ ...options, validation: null });
    expect((await post(without, path, {}, { headers })).status).toBe(403);
    expect((await without.request('/v1/drafters/jobs', { headers })).status).toBe(403);
    expect((await app.request(path, { headers })).status).toBe(405);
    expect((await app.request('/v1/drafters/jobs/x', { method: 'PUT', headers })).status).toBe(405);
  });
});

describe('files of jobs', () => {
  let root: string;
  let folders: JobFolders;

  beforeEach(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'blockdraft-jobs-')));
    folders = { output: join(root, 'output'), runs: join(root, 'runs') };
    for (const path of ['output/validated', 'output/empty', 'runs/v5', 'outside'])
      mkdirSync(join(root, path), { recursive: true });
    writeFileSync(join(root, 'output/validated/answers.jsonl'), '');
    symlinkSync(join(root, 'outside'), join(root, 'output/link'));
    symlinkSync(join(root, 'nowhere'), join(root, 'output/dangling'));
    symlinkSync(join(root, 'outside'), join(root, 'runs/link'));
  });

  afterEach(() => rmSync(root, { recursive: true }));

  test.each<[string, object, Partial<ValidationTask>]>([
    [
      'a/validate',
      { limit: 2, out: 'new/deep', resume: true },
      { kind: 'validate', settings: { limit: 2, resume: true, out: 'ROOT/output/new/deep' } },
    ],
    ['compare', { drafters: ['a', 'b'], out: './x/../y' }, { kind: 'compare', settings: { out: 'ROOT/output/y' } }],
    [
      'a/record',
      { out: 'r', prompts: [{ prompt: 'x' }, { prompt: 'y' }], resume: false, no_last_hidden_state: true, taps: [-1, 3] },
      {
        kind: 'record',
        drafters: [{ name: 'a', kind: 'dflash', folder: '/models/a' }],
        prompts: [{ prompt: 'x' }, { prompt: 'y' }],
        settings: { no_last_hidden_state: true, taps: '-1,3', out: 'ROOT/output/r' },
      },
    ],
    ['b/record', { out: 'r', taps: [3] }, { kind: 'record', settings: { taps: '3', out: 'ROOT/output/r' } }],
    [
      'export-hard',
      { validation: 'validated', limit: 3 },
      { kind: 'export-hard', drafters: [], settings: { limit: 3, validation: 'ROOT/output/validated' } },
    ],
    [
      'watch',
      { watch: ['v5=v5', 'v5'], training_log: ['v5=v5/log.jsonl'], min_streak: 1, out: 'w' },
      {
        kind: 'watch',
        drafters: [],
        settings: {
          min_streak: 1,
          watch: ['v5=ROOT/runs/v5', 'ROOT/runs/v5'],
          training_log: ['v5=ROOT/runs/v5/log.jsonl'],
          out: 'ROOT/output/w',
        },
      },
    ],
  ])('lie where the server lets them: %s %j', async (path, body, task) => {
    const { app, runs } = setUp(['k'], folders);
    const { response, card } = await start(app, `/v1/drafters/${path}`, body);
    expect(response.status).toBe(202);
    expect(card).toMatchObject({ kind: task.kind, status: 'running' });
    const asked = JSON.parse(JSON.stringify(runs[0]?.task).replaceAll(root, 'ROOT'));
    expect(asked).toMatchObject(task);
    expect(asked.settings).toEqual(task.settings);
  });

  test.each([
    ['a/validate', { out: '../x' }, 403, 'out'],
    ['a/validate', { out: '.' }, 403, 'out'],
    ['a/validate', { out: '/etc/x' }, 403, 'out'],
    ['a/validate', { out: 'link/x' }, 403, 'out'],
    ['a/validate', { out: 'dangling' }, 403, 'out'],
    ['a/validate', { out: 'dangling/x' }, 403, 'out'],
    ['a/validate', { out: 'validated/answers.jsonl/x' }, 403, 'out'],
    ['a/validate', { out: 'x'.repeat(300) }, 403, 'out'],
    ['export-hard', { validation: 'validated/answers.jsonl' }, 404, 'validation'],
    ['a/record', { out: '../output-of-another' }, 403, 'out'],
    ['compare', { drafters: ['a', 'b'], out: '../x' }, 403, 'out'],
    ['export-hard', { validation: 'empty' }, 404, 'validation'],
    ['export-hard', { validation: 'link' }, 403, 'validation'],
    ['export-hard', { validation: 'validated', out: '../x' }, 403, 'out'],
    ['watch', { watch: ['v6'] }, 404, 'watch'],
    ['watch', { watch: ['v5=../runs'] }, 403, 'watch'],
    ['watch', { watch: ['link'] }, 403, 'watch'],
    ['watch', { watch: ['v5'], training_log: ['../output/validated/answers.jsonl'] }, 403, 'training_log'],
    ['watch', { watch: ['v5'], out: 'link' }, 403, 'out'],
  ])('and nowhere else: %s %j gets %i', async (path, body, status, param) => {
    const { app, runs } = setUp(['k'], folders);
    const response = await post(app, `/v1/drafters/${path}`, body, { headers });
    expect([response.status, (await errorOf(response)).param]).toEqual([status, param]);
    expect(runs).toEqual([]);
  });

  test.each([
    ['a/validate', { out: 'x' }, '--validation-dir'],
    ['a/record', { out: 'x' }, '--validation-dir'],
    ['export-hard', { validation: 'x' }, '--validation-dir'],
    ['watch', { watch: ['x'] }, '--drafter-dir'],
  ])('need a server with a folder for them: %s', async (path, body, option) => {
    const { app, runs } = setUp();
    const response = await post(app, `/v1/drafters/${path}`, body, { headers });
    const { code, message } = await errorOf(response);
    expect([response.status, code, message]).toEqual([403, 'not_allowed', expect.stringContaining(option)]);
    expect(runs).toEqual([]);
  });

  test.each(['a/record', 'export-hard', 'watch'])('need a key too: %s', async (path) => {
    const { app, options } = setUp(['k'], folders);
    const url = `/v1/drafters/${path}`;
    expect((await post(app, url, {})).status).toBe(401);
    expect((await post(setUp([], folders).app, url, {})).status).toBe(403);
    expect((await post(createApp({ ...options, validation: null }), url, {}, { headers })).status).toBe(403);
    expect((await app.request(url, { headers })).status).toBe(405);
  });
});
