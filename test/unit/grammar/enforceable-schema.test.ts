import { describe, expect, it } from 'vitest';
import { enforceableSchema } from '../../../src/grammar/enforceable-schema.ts';

describe('schemas that cannot be enforced are refused by name', () => {
  const refused: readonly (readonly [object, string])[] = [
    [{ type: 'array', uniqueItems: true }, 'uniqueItems at #'],
    [
      { type: 'object', properties: { a: { type: 'object', properties: { b: { not: {} } } } } },
      'not at #/properties/a/properties/b',
    ],
    [{ anyOf: [{ type: 'number', multipleOf: 2 }] }, 'multipleOf at #/anyOf/0'],
    [{ type: 'array', items: { if: {}, else: {} } }, 'if at #/items'],
    [{ $defs: { x: { type: 'object', patternProperties: {} } } }, 'patternProperties at #/$defs/x'],
    [{ allOf: [{ type: 'object' }, { type: 'object' }] }, 'allOf of several schemas at #'],
    [{ $ref: '#/$defs/a', properties: {} }, '$ref without other restrictions at #, got properties beside it'],
    [{ type: 'object', anyOf: [{}] }, 'anyOf without other restrictions at #, got type beside it'],
    [{ minLength: 2 }, 'a type beside minLength at #'],
    [{ type: 'string', pattern: 'a', maxLength: 2 }, 'pattern without other restrictions of the text at #, got maxLength'],
    [{ type: 'string', format: 'phone' }, 'format "phone" at #'],
    [{ type: 'string', pattern: 'a"b' }, 'a pattern with characters that JSON escapes at #'],
    [{ type: 'object', required: ['a'] }, 'required properties at # that are declared, got "a"'],
    [{ type: 'object', properties: { 'a"b': {} } }, 'names of properties without quotes'],
    [{ type: 'number', minimum: 0 }, 'minimum of what need not be an integer at #'],
    [{ type: 'integer', minimum: 2 }, 'got 2 to Infinity'],
    [{ type: 'integer', minimum: 1, maximum: 5000 }, 'got 1 to 5000'],
    [{ type: 'integer', minimum: 3, maximum: 2 }, 'a range with an integer in it at #'],
    [{ type: 'string', maxLength: 11 }, 'at most 10 for maxLength at #, got 11'],
    [{ type: 'array', items: 3 }, 'a JSON schema at #/items, got 3'],
    [{ $ref: 'http://127.0.0.1/schema' }, 'a $ref to a place in the schema, as #/$defs/name, at #'],
    [{ type: 'array', items: { $ref: '#anchor' } }, 'a $ref to a place in the schema, as #/$defs/name, at #/items'],
    [{ type: [] }, 'a type at #, got a list of none'],
    [{ enum: [] }, "a value of the schema's type at #, got []"],
    [{ type: 'string', const: 3 }, "a value of the schema's type at #, got [3]"],
    [{ type: 'string', pattern: 'a$b' }, 'a pattern with a $ in front of other text at #'],
  ];
  it.each(refused)('%j', (schema, message) => {
    expect(() => enforceableSchema(schema, 10)).toThrow(message);
    expect(() => enforceableSchema(schema, 10)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });
});

describe('schemas in other words', () => {
  const changed: readonly (readonly [object, object])[] = [
    [
      { type: 'object', properties: { a: true }, additionalProperties: true },
      { type: 'object', properties: { a: true }, additionalProperties: false },
    ],
    [
      { type: 'object', additionalProperties: { type: 'integer', minimum: 0.5 } },
      { type: 'object', additionalProperties: { type: 'integer', minimum: 1 } },
    ],
    [
      { type: 'integer', exclusiveMinimum: -3, maximum: 1.5 },
      { type: 'integer', enum: [-2, -1, 0, 1] },
    ],
    [
      { type: 'integer', minimum: 4, exclusiveMaximum: 6 },
      { type: 'integer', enum: [4, 5] },
    ],
    [
      { type: 'integer', exclusiveMinimum: 0 },
      { type: 'integer', minimum: 1 },
    ],
    [{ type: ['string', 'null', 'integer'], enum: [1, 'a', 1.5, null, {}, [], true] }, { enum: [1, 'a', null] }],
  ];
  it.each(changed)('%j', (schema, enforceable) => {
    expect(enforceableSchema(schema, 10)).toEqual(enforceable);
  });

  it('says the same of a schema that needs no change, with titles and defaults', () => {
    const schema = {
      title: 'T',
      type: 'object',
      properties: { title: { type: 'string', default: 'x', maxLength: 3 } },
      required: ['title'],
    };
    expect(enforceableSchema(schema, 10)).toEqual(schema);
  });
});
