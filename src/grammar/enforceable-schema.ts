/**
 * JSON schemas as the grammar engine can enforce them. The engine passes over keywords that it does not know, takes others for
 * less than they say, and an answer must not be called valid when it need not be. So what it would get wrong is put in other
 * words, or refused. What is left may allow less than the schema:
 * - properties that an object does not declare are not written, unless it declares none;
 * - a `pattern` must match all of the text, and has no match that JSON would escape.
 * It allows more in one place: `oneOf` is enforced as `anyOf`, as vLLM does.
 */
import { enforceablePattern } from './enforceable-pattern.ts';
import { refusal } from './refusal.ts';

type Schema = Readonly<Record<string, unknown>>;

const NOT_ENFORCED = [
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'patternProperties',
  'uniqueItems',
  'contains',
  'minContains',
  'maxContains',
  'multipleOf',
  '$dynamicRef',
  '$recursiveRef',
];

/** Each decides by itself what a value may be; the engine passes over what is beside it. */
const DECIDING = ['$ref', 'const', 'enum', 'anyOf', 'oneOf', 'allOf'];

const OF_OBJECTS = [
  'properties',
  'required',
  'additionalProperties',
  'propertyNames',
  'minProperties',
  'maxProperties',
  'unevaluatedProperties',
];
const OF_ARRAYS = ['items', 'prefixItems', 'minItems', 'maxItems', 'unevaluatedItems'];
const OF_STRINGS = ['minLength', 'maxLength', 'pattern', 'format'];
const OF_NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const RESTRICTING = [...OF_OBJECTS, ...OF_ARRAYS, ...OF_STRINGS, ...OF_NUMBERS];

const FORMATS = [
  'email',
  'date',
  'time',
  'date-time',
  'duration',
  'ipv4',
  'ipv6',
  'hostname',
  'uuid',
  'uri',
  'uri-reference',
  'uri-template',
  'json-pointer',
  'relative-json-pointer',
];

const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];

/** Whole numbers between two bounds are listed, so many at most. */
const MAX_LISTED = 1000;

/** Characters of a pattern with its sets written out. */
const MAX_PATTERN = 2 ** 18;

const MAPS_OF_SCHEMAS = ['properties', '$defs', 'definitions'];
const LISTS_OF_SCHEMAS = ['prefixItems', 'anyOf', 'oneOf', 'allOf'];
const SCHEMAS = ['items', 'additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems'];

/**
 * @param maxCount the largest number of characters, items or properties that may be asked for
 * @throws AppError `invalid_request` that names the keyword and where it is
 */
export function enforceableSchema(schema: unknown, maxCount: number, path = '#'): unknown {
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema)) throw refusal(`a JSON schema at ${path}`, JSON.stringify(schema));
  const unknown = NOT_ENFORCED.find((keyword) => Object.hasOwn(schema, keyword) && schema[keyword] !== false);
  if (unknown !== undefined) throw unsupported(unknown, path);
  checkReference(schema, path);
  checkCombination(schema, path);
  checkObject(schema, path);
  for (const keyword of COUNTS) {
    const count = schema[keyword];
    if (typeof count === 'number' && count > maxCount)
      throw refusal(`at most ${maxCount} for ${keyword} at ${path}`, `${count}`);
  }
  return withNestedSchemas(withValues(withText(withNumbers(withProperties(schema), path), path), path), maxCount, path);
}

function withNestedSchemas(schema: Schema, maxCount: number, path: string): Schema {
  const nested = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    const inner = (child: unknown, at: string | number) => enforceableSchema(child, maxCount, `${path}/${keyword}/${at}`);
    if (MAPS_OF_SCHEMAS.includes(keyword) && isObject(value)) {
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, child]) => [name, inner(child, name)]))];
    }
    if (LISTS_OF_SCHEMAS.includes(keyword) && Array.isArray(value)) return [keyword, value.map(inner)];
    if (SCHEMAS.includes(keyword)) return [keyword, enforceableSchema(value, maxCount, `${path}/${keyword}`)];
    return [keyword, value];
  });
  return Object.fromEntries(nested);
}

/** The engine takes a reference to anywhere else for any value. */
function checkReference({ $ref: reference }: Schema, path: string): void {
  if (typeof reference !== 'string' || /^#(\/|$)/.test(reference)) return;
  throw refusal(`a $ref to a place in the schema, as #/$defs/name, at ${path}`, JSON.stringify(reference));
}

function checkCombination(schema: Schema, path: string): void {
  const present = (keywords: readonly string[]) => keywords.filter((keyword) => Object.hasOwn(schema, keyword));
  const [decides, ...others] = present([...DECIDING, ...RESTRICTING]);
  if (decides === undefined) return;
  if (DECIDING.includes(decides)) {
    const [beside] = [...others, ...(decides === 'const' || decides === 'enum' ? [] : present(['type']))];
    if (beside !== undefined) throw refusal(`${decides} without other restrictions at ${path}`, `${beside} beside it`);
  } else if (!Object.hasOwn(schema, 'type')) {
    throw refusal(`a type beside ${decides} at ${path}`, 'none', 'say which type it is for');
  }
  if (Array.isArray(schema['allOf']) && schema['allOf'].length !== 1) throw unsupported('allOf of several schemas', path);
  const [text, ...more] = present(['format', 'pattern', 'minLength', 'maxLength']);
  if ((text === 'format' || text === 'pattern') && more.length > 0) {
    throw refusal(`${text} without other restrictions of the text at ${path}`, `${more[0]} beside it`);
  }
}

function checkObject({ properties, required }: Schema, path: string): void {
  const names = isObject(properties) ? Object.keys(properties) : [];
  const quoted = names.find((name) => JSON.stringify(name).includes('\\'));
  if (quoted !== undefined)
    throw refusal(`names of properties without quotes, backslashes and controls at ${path}`, JSON.stringify(quoted));
  const declared = new Set(names);
  const undeclared = Array.isArray(required) ? required.find((name) => !declared.has(String(name))) : undefined;
  if (undeclared !== undefined) {
    throw refusal(`required properties at ${path} that are declared`, JSON.stringify(undeclared), 'add it to properties');
  }
}

/** The engine would take a declared property for an additional one, whose schema is another. */
function withProperties(schema: Schema): Schema {
  const { properties, additionalProperties } = schema;
  if (!isObject(properties) || Object.keys(properties).length === 0 || additionalProperties === undefined) return schema;
  return { ...schema, additionalProperties: false };
}

/** The engine gets most ranges wrong at their ends. From 0 and from 1 they are right, and for the integers that a double can hold. */
function withNumbers(schema: Schema, path: string): Schema {
  const keyword = OF_NUMBERS.find((name) => Object.hasOwn(schema, name));
  if (keyword === undefined) return schema;
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, ...others } = schema;
  if (schema['type'] !== 'integer') throw unsupported(`${keyword} of what need not be an integer`, path);
  const bounds = [minimum, exclusiveMinimum, maximum, exclusiveMaximum].filter((bound) => bound !== undefined);
  if (!bounds.every((bound) => typeof bound === 'number'))
    throw refusal(`numbers as bounds at ${path}`, JSON.stringify(bounds));
  const least = Math.max(...from(minimum, Math.ceil), ...from(exclusiveMinimum, (bound) => Math.floor(bound) + 1));
  const most = Math.min(...from(maximum, Math.floor), ...from(exclusiveMaximum, (bound) => Math.ceil(bound) - 1));
  if (most === Number.POSITIVE_INFINITY && (least === 0 || least === 1)) return { ...others, minimum: least };
  if (most === Number.MAX_SAFE_INTEGER && [Number.MIN_SAFE_INTEGER, 0, 1].includes(least)) {
    return { ...others, minimum: least, maximum: most };
  }
  if (!(most - least < MAX_LISTED)) {
    throw refusal(
      `integers from 0, from 1, or between bounds with at most ${MAX_LISTED} of them at ${path}`,
      `${least} to ${most}`,
    );
  }
  if (most < least) throw refusal(`a range with an integer in it at ${path}`, `${least} to ${most}`);
  return { ...others, enum: Array.from({ length: most - least + 1 }, (_, index) => least + index) };
}

function from(bound: unknown, toInteger: (bound: number) => number): number[] {
  return typeof bound === 'number' ? [toInteger(bound)] : [];
}

function withText(schema: Schema, path: string): Schema {
  const { format, pattern } = schema;
  if (format !== undefined && !FORMATS.includes(String(format))) throw unsupported(`format ${JSON.stringify(format)}`, path);
  if (typeof pattern !== 'string') return schema;
  const refuse = (what: string) => unsupported(`a pattern with ${what}`, path);
  return { ...schema, pattern: enforceablePattern(pattern, { quoted: true, maxLength: MAX_PATTERN, refuse }) };
}

/** The engine passes over a type beside values, and over one that is no type at all. */
function withValues(schema: Schema, path: string): Schema {
  const { type, ...others } = schema;
  const types = type === undefined ? null : Array.isArray(type) ? type : [type];
  if (types?.length === 0) throw refusal(`a type at ${path}`, 'a list of none');
  const ofType = (value: unknown) => types === null || types.some((one) => isOfType(value, one));
  const values = Object.hasOwn(schema, 'const') ? [schema['const']] : schema['enum'];
  if (!Array.isArray(values)) return schema;
  const fitting = values.filter(ofType);
  if (fitting.length === 0) throw refusal(`a value of the schema's type at ${path}`, JSON.stringify(values));
  return fitting.length === values.length ? schema : { ...others, enum: fitting };
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function unsupported(what: string, path: string) {
  return refusal('a JSON schema whose keywords can be enforced', `${what} at ${path}`, 'leave it out');
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
