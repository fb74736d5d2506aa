import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Operation, operations } from '../../../src/server/openapi/operations.ts';
import { jsonSchema } from '../../../src/server/schemas/json-schema.ts';
import { errorBody } from '../../../src/server/schemas/responses/error-body.ts';
import { DEFAULT_SERVER_CONFIG } from '../../../src/server/server-config.ts';
import { createFullApp, type FullApp } from '../../support/full-app.ts';
import { fitting, nearlyFitting, type Schema } from '../../support/json-schema-arbitrary.ts';
import { ssePayloads } from '../../support/read-sse.ts';

/** So that the largest request that is taken is a small one. */
const LIMITS = { maxChoices: 4, maxRequestTokens: 256, maxRequestLogprobs: 4096 };
const OPERATIONS = operations({ ...DEFAULT_SERVER_CONFIG.limits, ...LIMITS });
const withBody = OPERATIONS.flatMap((operation) =>
  (operation.body ?? []).map((body) => ({ ...operation, schema: jsonSchema(body) as Schema })),
);

function setUp(): FullApp {
  return createFullApp({ info: { maxContext: 64 } }, LIMITS);
}

/** What comes back is an answer as described, or a refusal in its envelope; nothing a caller sends is a failure of the server. */
async function check(response: Response, { status = 200, answer, event }: Operation): Promise<number> {
  const text = await response.text();
  expect(response.status, text).toBeLessThan(500);
  if (response.status !== status) {
    errorBody.parse(JSON.parse(text));
  } else if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    for (const payload of ssePayloads(text)) {
      const told = 'error' in payload ? errorBody.parse(payload).error : event!.parse(payload);
      expect(told).not.toMatchObject({ type: 'server_error' });
    }
  } else if (answer !== null) {
    answer.parse(JSON.parse(text));
  }
  return response.status;
}

function send({ app, headers }: FullApp, { method, path }: Operation, body: string, name: string): Promise<Response> {
  return Promise.resolve(
    app.request(path.replace(/\{\w+\}/, encodeURIComponent(name)), {
      method: method.toUpperCase(),
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    }),
  );
}

/** Fields of which few values fit together. */
const PLAIN: Readonly<Record<string, unknown>> = {
  messages: [{ role: 'user', content: 'x' }],
  drafters: ['a', 'b'],
  validation: 'validated',
  watch: ['run'],
};

/** By the schema; in half of them the other fields get their turn. */
function bodiesOf(schema: Schema): fc.Arbitrary<unknown> {
  const plain = Object.fromEntries(Object.entries(PLAIN).filter(([name]) => name in (schema.properties ?? {})));
  return fc.tuple(fitting(schema), fc.boolean()).map(([body, isPlain]) => (isPlain ? { ...(body as object), ...plain } : body));
}

describe('whatever is sent, the server answers or refuses', () => {
  const names = fc.oneof(fc.constantFrom('a', 'b', 'none'), fc.string({ minLength: 1 }));

  test.each(withBody)('$method $path, bodies by its schema', async (operation) => {
    const full = setUp();
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(bodiesOf(operation.schema), names, async (body, name) => {
        const status = await check(await send(full, operation, JSON.stringify(body), name), operation);
        if (status < 300) answered += 1;
      }),
      { numRuns: 60 },
    );
    // Or the bodies would say little about answers.
    expect(answered).toBeGreaterThan(0);
  });

  test.each(withBody)('$method $path, bodies that nearly fit', async (operation) => {
    const full = setUp();
    await fc.assert(
      fc.asyncProperty(nearlyFitting(operation.schema), names, async (body, name) => {
        await check(await send(full, operation, JSON.stringify(body) ?? '', name), operation);
      }),
      { numRuns: 120 },
    );
  });

  test.each(withBody)('$method $path, bodies that are no JSON', async (operation) => {
    const full = setUp();
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), names, async (body, name) => {
        await check(await send(full, operation, body, name), operation);
      }),
      { numRuns: 20 },
    );
  });

  test.each(OPERATIONS.filter(({ path, body }) => body === undefined && path.includes('{')))(
    '$method $path, any name',
    async (operation) => {
      const { app, headers } = setUp();
      await fc.assert(
        fc.asyncProperty(fc.oneof(names, fc.constantFrom('..', '%', '%00', '%ff', 'x'.repeat(5000))), async (name) => {
          const path = operation.path.replace(/\{\w+\}/, () => (name.startsWith('%') ? name : encodeURIComponent(name)));
          const response = await app.request(path, { method: operation.method.toUpperCase(), headers });
          expect(response.status).toBeLessThan(500);
          if (response.status >= 400) errorBody.parse(await response.json());
        }),
        { numRuns: 40 },
      );
    },
  );
});
