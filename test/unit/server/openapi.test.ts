import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openApiDocument } from '../../../src/server/openapi/document.ts';
import { type Operation, operations } from '../../../src/server/openapi/operations.ts';
import { DESCRIPTION_PATHS } from '../../../src/server/routes/api-description.ts';
import { errorBody } from '../../../src/server/schemas/responses/error-body.ts';
import { DEFAULT_SERVER_CONFIG } from '../../../src/server/server-config.ts';
import { createFullApp } from '../../support/full-app.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { STREAM_VECTORS } from './stream-vectors.ts';

const { limits } = DEFAULT_SERVER_CONFIG;
const ajv = new Ajv2020({ strict: false });
// Ajv knows the keyword and checks nothing by it.
ajv.removeKeyword('contentSchema');
ajv.addKeyword({
  keyword: 'contentSchema',
  type: 'string',
  compile: (schema: object) => {
    const fits = ajv.compile(schema);
    return (text: string) => text.startsWith('{') && fits(JSON.parse(text));
  },
});
const OPERATIONS = operations(limits);
const operationOf = (method: string, path: string): Operation =>
  OPERATIONS.find((operation) => operation.method === method && operation.path === path)!;

const messages = [{ role: 'user', content: 'hi' }];
const everything = {
  temperature: 0,
  max_tokens: 12,
  n: 2,
  prompt_logprobs: 1,
  return_token_ids: true,
  return_meta_info: true,
  return_spec_tokens_details: true,
  timings_per_token: true,
  trace: true,
  spec_decode_metrics: 'detailed',
};
const streamed = { ...everything, prompt_logprobs: null, stream: true, stream_options: { include_usage: true } };

/** Bodies for which an operation answers, by method and path; `{}` for those without a body. */
const SAMPLES: Readonly<Record<string, readonly object[]>> = {
  'post /v1/completions': [
    { prompt: 'x' },
    { prompt: ['x', 'y'], logprobs: 2, echo: true, ...everything },
    { prompt: [[1, 2]], logprobs: 2, echo: true, ...streamed },
    {
      prompt: 'x',
      logit_bias: { 5: 1 },
      bad_words: ['a'],
      allowed_token_ids: [1],
      structured_outputs: { json: {} },
      stop: 'x',
    },
  ],
  'post /v1/chat/completions': [
    { messages },
    { messages, logprobs: true, top_logprobs: 2, ...everything },
    { messages, logprobs: true, top_logprobs: 2, ...streamed },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }], response_format: { type: 'json_object' } },
  ],
  'post /v1/completions/render': [{ prompt: ['x', 'abc'], truncate_prompt_tokens: 1 }],
  'post /v1/chat/completions/render': [{ messages }],
  'post /tokenize': [{ prompt: 'x' }, { messages, return_token_strs: true }],
  'post /detokenize': [{ tokens: [1, 2] }],
  'post /v1/drafters/{name}/load': [{ path: 'run-2' }],
  'post /v1/drafters/{name}/validate': [{ limit: 2 }],
  'post /v1/drafters/{name}/diagnose': [{}],
  'post /v1/drafters/{name}/record': [{ out: 'recording', taps: [-1, 2], no_last_hidden_state: true, turns: 'last' }],
  'post /v1/drafters/compare': [{ drafters: ['a', 'b'], out: 'compared' }],
  'post /v1/drafters/export-hard': [{ validation: 'validated', limit: 2 }],
  'post /v1/drafters/watch': [{ watch: ['v1=run'], training_log: ['run/log.jsonl'], out: 'watched', min_streak: 1 }],
};

describe('the table of operations', () => {
  test('is that of the application', () => {
    const { app } = createFullApp();
    const routes = app.routes
      .filter(({ method, path }) => method !== 'ALL' && !DESCRIPTION_PATHS.includes(path))
      .map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)(?:\{[^}]*\})?/g, '{$1}')}`);
    expect(new Set(routes)).toEqual(new Set(OPERATIONS.map(({ method, path }) => `${method} ${path}`)));
  });

  test('says which operations need no key', async () => {
    const { app } = createFullApp();
    for (const { method, path, isOpen } of OPERATIONS) {
      const { status } = await app.request(path.replace(/\{\w+\}/, 'a'), { method: method.toUpperCase() });
      expect(status === 401, path).toBe(isOpen !== true);
    }
  });
});

describe('answers are as described', () => {
  const cases = OPERATIONS.flatMap((operation) =>
    (SAMPLES[`${operation.method} ${operation.path}`] ?? [{}]).map((body) => ({ ...operation, sample: body })),
  );

  test.each(cases)(
    '$method $path: $sample',
    async ({ method, path, sample, body, status = 200, answer, event, contentType }) => {
      const { app, headers } = createFullApp({ script: () => ({ text: 'a {"b"} é', accepts: [2], trace: TRACE }) });
      let id = 'a';
      if (path.startsWith('/v1/models/')) id = 'fake-model';
      if (path.startsWith('/v1/drafters/jobs')) {
        const started = await app.request('/v1/drafters/a/diagnose', {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: '{}',
        });
        ({ id } = (await started.json()) as { id: string });
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      const response = await app.request(path.replace(/\{\w+\}/, id), {
        method: method.toUpperCase(),
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(sample) }),
      });
      expect(response.status, await response.clone().text()).toBe(status);
      if (answer === null) {
        expect(response.headers.get('content-type')).toContain(contentType);
      } else if ('stream' in sample) {
        for (const payload of ssePayloads(await response.text())) event!.parse(payload);
      } else {
        answer.parse(await response.json());
      }
    },
  );

  test.each(STREAM_VECTORS.filter(({ expected }) => expected.errorCode === undefined))(
    'in the case of $name',
    async ({ path, body, script, info }) => {
      const { app, headers } = createFullApp({ script: () => script, info: info ?? {} });
      const ask = (fields: object) =>
        app.request(path, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(fields),
        });
      const { stream_options: _, ...rest } = body;
      operationOf('post', path).answer!.parse(await (await ask(rest)).json());
      for (const payload of ssePayloads(await (await ask({ ...body, stream: true })).text())) {
        operationOf('post', path).event!.parse(payload);
      }
    },
  );

  test.each(OPERATIONS.filter(({ body }) => body !== undefined))(
    'refusals of $path, too',
    async ({ method, path, refusals }) => {
      const { app, headers } = createFullApp();
      const ask = (type: string, body: string) =>
        app.request(path.replace(/\{\w+\}/, 'a'), {
          method: method.toUpperCase(),
          headers: { ...headers, 'content-type': type },
          body,
        });
      for (const response of [await ask('application/json', '{"nope":1}'), await ask('text/plain', '{}')]) {
        expect(refusals).toContain(response.status);
        errorBody.parse(await response.json());
      }
    },
  );
});

const TRACE = [
  {
    position: 3,
    anchor: 97,
    drafted: [{ token: 98, confidence: null, targetProbability: 0.5, outcome: 'accepted' }],
    emitted: [{ token: 98, targetProbability: 0.5 }],
    rejectedRank: null,
    end: 'whole',
    shortBy: null,
    phase: 'content',
  },
] as const;

const HEADERS = { authorization: 'Bearer k' } as const;

describe('GET /openapi.json', () => {
  test('is the description', async () => {
    const { app } = createFullApp();
    const response = await app.request('/openapi.json', { headers: HEADERS });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(openApiDocument({ version: '9.9.9', limits }))));
  });

  test('describes bodies as the server takes them', () => {
    const document = JSON.parse(JSON.stringify(openApiDocument({ version: '1', limits }))) as Described;
    for (const [name, samples] of Object.entries(SAMPLES)) {
      const [method, path] = name.split(' ') as [string, string];
      const schema = z.fromJSONSchema(document.paths[path]![method]!.requestBody.content['application/json'].schema);
      for (const sample of samples) expect(schema.safeParse(sample).error, name).toBeUndefined();
      expect(schema.safeParse({ nope: 1 }).success, name).toBe(false);
    }
  });

  test.each([
    ['post /v1/chat/completions', { messages: [] }],
    ['post /v1/chat/completions', { messages, tools: Array(129).fill({ type: 'function', function: { name: 'a' } }) }],
    ['post /v1/completions', { prompt: 'x', allowed_token_ids: [] }],
    ['post /v1/completions', { prompt: 'x', bad_words: Array(257).fill('a') }],
    ['post /v1/completions', { prompt: 'x', logit_bias: Object.fromEntries(Array.from({ length: 1025 }, (_, id) => [id, 1])) }],
    ['post /v1/completions', { prompt: 'x', structured_outputs: { choice: [] } }],
    ['post /v1/completions', { prompt: 'x', structured_outputs: {} }],
    ['post /v1/drafters/{name}/validate', { prompts: [{ id: 'a' }, { id: 'b' }] }],
    ['post /v1/drafters/{name}/diagnose', { prompts: [{ prompt: 'x', messages }, { prompt: 'x' }] }],
    ['post /v1/drafters/compare', { drafters: ['a', 'a'] }],
    ['post /v1/drafters/{name}/record', {}],
    ['post /v1/drafters/watch', { watch: [] }],
    ['post /v1/drafters/export-hard', { validation: '' }],
    ['post /v1/drafters/export-hard', { validation: 'a\0' }],
  ])('describes what a body of %s may hold: not %j', async (name, sample) => {
    const [method, path] = name.split(' ') as [string, string];
    const { app, headers } = createFullApp();
    const described = (JSON.parse(JSON.stringify(openApiDocument({ version: '1', limits }))) as Described).paths[path]![
      method
    ]!;
    const { schema } = described.requestBody.content['application/json'];
    const accepts = ajv.compile(schema as object);
    const { status } = await app.request(path.replace(/\{\w+\}/, 'a'), {
      method: method.toUpperCase(),
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(sample),
    });
    expect(status).toBe(400);
    expect(accepts(sample)).toBe(false);
  });

  test.each(['/v1/completions', '/v1/chat/completions'])('describes the events of a stream of %s', async (path) => {
    const { app, headers } = createFullApp();
    const response = await app.request(path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(path.includes('chat') ? { messages, ...streamed } : { prompt: 'x', ...streamed }),
    });
    const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) => ({ data }));
    const document = JSON.parse(JSON.stringify(openApiDocument({ version: '1', limits }))) as Described;
    const { schema } = document.paths[path]!['post']!.responses[200].content['text/event-stream'];
    const fits = ajv.compile(schema);
    expect(events.length).toBeGreaterThan(2);
    for (const event of [...events, { data: '{"error":{"message":"a","type":"b","param":null,"code":"c"}}' }]) {
      expect(fits(event), JSON.stringify(event)).toBe(true);
    }
    expect(fits({ data: '{"id":"a"}' })).toBe(false);
  });

  test('offers a body to try for each operation that takes one, which it takes', () => {
    const { paths } = openApiDocument({ version: '1', limits });
    for (const { method, path, body } of OPERATIONS) {
      if (body === undefined) continue;
      const { requestBody } = paths[path]![method] as { requestBody: { content: Record<string, { example: unknown }> } };
      const { example } = requestBody.content['application/json']!;
      expect(
        body.some((schema) => schema.safeParse(example).success),
        path,
      ).toBe(true);
    }
  });

  test('has a heading for each operation', () => {
    const { paths, tags } = openApiDocument({ version: '1', limits });
    expect(tags.map(({ name }) => name)).toEqual([
      'Completions',
      'Prompts and tokens',
      'Drafters',
      'Measuring drafters',
      'Server',
    ]);
    const heading = ([method, path]: readonly [string, string]) => (paths[path]![method] as { tags: readonly string[] }).tags;
    expect(OPERATIONS.map(({ method, path }) => heading([method, path])[0])).not.toContain(undefined);
    expect(heading(['post', '/v1/chat/completions'])).toEqual(['Completions']);
    expect(heading(['post', '/v1/chat/completions/render'])).toEqual(['Prompts and tokens']);
    expect(heading(['get', '/v1/drafters'])).toEqual(['Drafters']);
    expect(heading(['get', '/v1/drafters/jobs/{id}'])).toEqual(['Measuring drafters']);
    expect(heading(['get', '/v1/models'])).toEqual(['Server']);
  });

  test('has no lists with a schema for each place, which not every reader knows', () => {
    expect(JSON.stringify(openApiDocument({ version: '1', limits }))).not.toContain('"prefixItems"');
  });

  test('has no patterns with digits for characters, by which some readers refuse the whole schema', () => {
    const patterns = JSON.stringify(openApiDocument({ version: '1', limits })).match(/"pattern":"(?:[^"\\]|\\.)*"/g);
    expect(patterns).not.toBeNull();
    for (const pattern of patterns!) expect(pattern).not.toMatch(/\\\d/);
  });

  type Schema = Parameters<typeof z.fromJSONSchema>[0];

  interface Described {
    readonly paths: Readonly<
      Record<
        string,
        Readonly<
          Record<
            string,
            {
              requestBody: { content: { 'application/json': { schema: Schema } } };
              responses: { 200: { content: { 'text/event-stream': { schema: object } } } };
            }
          >
        >
      >
    >;
  }
});

describe('GET /docs', () => {
  test('is a page that needs nothing from elsewhere', async () => {
    const { app } = createFullApp();
    const page = await app.request('/docs', { headers: HEADERS });
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'; script-src 'self';/);
    const html = await page.text();
    const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)]
      .map(([, link]) => link!)
      .filter((link) => !link.startsWith('data:'));
    expect(links).toHaveLength(3);
    for (const link of links) {
      const asset = await app.request(new URL(link, 'http://localhost/docs').pathname, { headers: HEADERS });
      expect(asset.status, link).toBe(200);
      expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(50);
    }
  });
});
