/** Values that fit a JSON schema, and values that nearly do. */
import fc from 'fast-check';

/** The part of JSON schema that zod writes. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

const MOST_ITEMS = 4;
const MOST_CHARACTERS = 12;
const NEAR = 20;

/** Values that fit; collections and texts are short, numbers are small or at an edge. */
export function fitting(schema: Schema): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map(fitting));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if ('const' in schema) return fc.constant(schema.const);
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => fitting({ ...schema, type })));
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.oneof({ weight: 5, arbitrary: near(schema) }, fc.constantFrom(lowest(schema), schema.maximum ?? NEAR));
    case 'number':
      return fc.double({
        min: schema.exclusiveMinimum ?? schema.minimum ?? -NEAR,
        max: schema.maximum ?? NEAR,
        minExcluded: schema.exclusiveMinimum !== undefined,
        noNaN: true,
      });
    case 'string':
      return text(schema);
    case 'array':
      return fc.array(fitting(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? MOST_ITEMS, Math.max(MOST_ITEMS, schema.minItems ?? 0)),
      });
    case 'object':
      return object(schema);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** What fits, with one value in it replaced, or a field added. */
export function nearlyFitting(schema: Schema): fc.Arbitrary<unknown> {
  const strange = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom(-1, 0, 1e308, 2 ** 53, 1.5, '', ' ', '\u0000', '\ud800', [], {}, [[]], null, true),
    fc.constantFrom('__proto__', 'constructor', '../../etc/passwd', 'http://127.0.0.1/', '(a+)+$', '{{ 7 * 7 }}'),
  );
  return fc.tuple(fitting(schema), fc.nat(1000), strange, fc.string()).map(([value, place, replacement, name]) => {
    if (place % 5 === 0 && isObject(value)) return { ...value, [name]: replacement };
    return replaceAt(value, place, replacement);
  });
}

function near(schema: Schema): fc.Arbitrary<number> {
  const min = lowest(schema);
  return fc.integer({ min, max: Math.min(schema.maximum ?? min + NEAR, min + NEAR) });
}

function lowest({ minimum = 0 }: Schema): number {
  return minimum <= Number.MIN_SAFE_INTEGER ? -NEAR : minimum;
}

function text({ pattern, minLength = 0, maxLength = MOST_CHARACTERS }: Schema): fc.Arbitrary<string> {
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern)).filter((found) => found.length <= 200);
  return fc.string({ minLength, maxLength: Math.min(maxLength, Math.max(minLength, MOST_CHARACTERS)), unit: 'grapheme' });
}

function object({ properties = {}, required = [], propertyNames, additionalProperties }: Schema): fc.Arbitrary<unknown> {
  const known = fc.record(Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, fitting(inner)])), {
    requiredKeys: required as string[],
  });
  if (typeof additionalProperties !== 'object') return known.chain((fields) => few(fields, required));
  return fc.dictionary(text(propertyNames ?? {}), fitting(additionalProperties), { maxKeys: MOST_ITEMS });
}

/** Most requests have few fields; with all of them nearly every one would be refused for a contradiction. */
function few(fields: Readonly<Record<string, unknown>>, required: readonly string[]): fc.Arbitrary<unknown> {
  const optional = Object.keys(fields).filter((name) => !required.includes(name));
  return fc
    .subarray(optional, { maxLength: Math.min(MOST_ITEMS, optional.length) })
    .map((kept) =>
      Object.fromEntries(Object.entries(fields).filter(([name]) => required.includes(name) || kept.includes(name))),
    );
}

function replaceAt(value: unknown, place: number, replacement: unknown): unknown {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  const at = place % (keys.length + 1);
  if (at === keys.length) return replacement;
  const key = keys[at]!;
  const inner = (value as Record<string, unknown>)[key];
  const changed = replaceAt(inner, Math.floor(place / (keys.length + 1)), replacement);
  if (Array.isArray(value)) return value.with(at, changed);
  return { ...(value as object), [key]: changed };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
