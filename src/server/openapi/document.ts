/** The OpenAPI description of this server, made from the schemas that check its requests. */

import { type JsonSchema, jsonSchema } from '../schemas/json-schema.ts';
import { errorBody } from '../schemas/responses/error-body.ts';
import type { RequestLimits } from '../server-config.ts';
import { EXAMPLES } from './examples.ts';
import { type Operation, operations } from './operations.ts';

const ERROR = { $ref: '#/components/responses/Error' } as const;

/** Headings under which a page shows operations; the first whose paths match. */
const GROUPS: readonly (readonly [heading: string, paths: RegExp])[] = [
  ['Completions', /completions$/],
  ['Prompts and tokens', /\/render$|tokenize$/],
  ['Drafters', /^\/v1\/drafters(\/\{name\}\/load)?$/],
  ['Measuring drafters', /^\/v1\/drafters\//],
  ['Server', /^/],
];

export interface DocumentOptions {
  readonly version: string;
  readonly limits: RequestLimits;
}

/** @returns a document of OpenAPI 3.1, whose schemas are JSON schemas */
export function openApiDocument({ version, limits }: DocumentOptions) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations(limits)) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'blockdraft',
      version,
      description:
        'Speculative decoding with the output of the target alone. Fields and statistics are explained in the documentation.',
    },
    // In this order.
    tags: GROUPS.map(([name]) => ({ name })),
    paths,
    components: {
      responses: { Error: { description: 'A refusal or a failure', content: json(jsonSchema(errorBody)) } },
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function describe({ path, summary, body, status = 200, answer, event, contentType, refusals, isOpen }: Operation) {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const content = {
    ...(answer === null ? { [contentType!]: { schema: { type: 'string' } } } : json(jsonSchema(answer))),
    ...(event === undefined ? {} : { 'text/event-stream': { schema: serverSentEvent(jsonSchema(event)) } }),
  };
  return {
    tags: [GROUPS.find(([, paths]) => paths.test(path))![0]],
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: json(anyOf(body.map(jsonSchema)), EXAMPLES[path]) } }),
    security: isOpen ? [] : [{ key: [] }],
    responses: {
      [status]: { description: 'The answer', content },
      ...Object.fromEntries([...refusals, 403, ...(isOpen ? [] : [401])].map((refusal) => [refusal, ERROR])),
    },
  };
}

function json(schema: JsonSchema, example?: object) {
  return { 'application/json': example === undefined ? { schema } : { schema, example } };
}

/** One event of a stream. A failure on the way ends it with an error in the place of a chunk. */
function serverSentEvent(chunk: JsonSchema): JsonSchema {
  const payload = { contentMediaType: 'application/json', contentSchema: anyOf([chunk, jsonSchema(errorBody)]) };
  return {
    type: 'object',
    properties: { data: { type: 'string', anyOf: [{ const: '[DONE]' }, payload] } },
    required: ['data'],
  };
}

function anyOf(schemas: readonly JsonSchema[]): JsonSchema {
  return schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
}
