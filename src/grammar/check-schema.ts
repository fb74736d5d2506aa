/**
 * Refuses JSON schemas that the grammar engine would take for less than they say: it passes over keywords that it does not
 * know, and an answer must not be called valid when it need not be. `oneOf` is enforced as `anyOf`, as vLLM does.
 */
import { refusal } from './refusal.ts';

/** Keywords that restrict values in a way that no grammar made here expresses. */
const NOT_ENFORCED = [
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'uniqueItems',
  'contains',
  'minContains',
  'maxContains',
  'multipleOf',
  'contentSchema',
  '$dynamicRef',
  '$recursiveRef',
];

/** Each decides by itself what a value may be; keywords beside it are passed over. */
const DECIDING = ['$ref', 'const', 'enum', 'anyOf', 'oneOf', 'allOf'];

const RESTRICTING = [
  'properties',
  'required',
  'additionalProperties',
  'patternProperties',
  'propertyNames',
  'minProperties',
  'maxProperties',
  'items',
  'prefixItems',
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'pattern',
  'format',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'unevaluatedProperties',
  'unevaluatedItems',
];

const FORMATS = new Set([
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
]);

const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];

const MAPS_OF_SCHEMAS = ['properties', 'patternProperties', '$defs', 'definitions'];
const LISTS_OF_SCHEMAS = ['prefixItems', 'anyOf', 'oneOf', 'allOf'];
const SCHEMAS = ['items', 'additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems'];

/**
 * @param maxCount the largest number of characters, items or properties that may be asked for
 * @throws AppError `invalid_request` that names the keyword and where it is
 */
export function checkSchema(schema: unknown, maxCount: number, path = '#'): void {
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) throw refusal(`a JSON schema at ${path}`, JSON.stringify(schema));
  const has = (keyword: string) => Object.hasOwn(schema, keyword);
  const unknown = NOT_ENFORCED.find((keyword) => has(keyword) && schema[keyword] !== false);
  if (unknown !== undefined) throw unsupported(unknown, path);
  checkCombination(schema, path);
  for (const keyword of COUNTS) {
    const count = schema[keyword];
    if (typeof count === 'number' && count > maxCount)
      throw refusal(`at most ${maxCount} for ${keyword} at ${path}`, `${count}`);
  }
  for (const keyword of MAPS_OF_SCHEMAS) {
    const map = schema[keyword];
    if (!isObject(map)) continue;
    for (const [name, inner] of Object.entries(map)) checkSchema(inner, maxCount, `${path}/${keyword}/${name}`);
  }
  for (const keyword of LISTS_OF_SCHEMAS) {
    const list = schema[keyword];
    if (!Array.isArray(list)) continue;
    for (const [index, inner] of list.entries()) checkSchema(inner, maxCount, `${path}/${keyword}/${index}`);
  }
  for (const keyword of SCHEMAS) if (has(keyword)) checkSchema(schema[keyword], maxCount, `${path}/${keyword}`);
}

function checkCombination(schema: Readonly<Record<string, unknown>>, path: string): void {
  const present = (keywords: readonly string[]) => keywords.filter((keyword) => Object.hasOwn(schema, keyword));
  const [decides, ...others] = [...present(DECIDING), ...present(RESTRICTING)];
  const besideType = decides !== 'const' && decides !== 'enum' && Object.hasOwn(schema, 'type') ? ['type'] : [];
  const [beside] = [...others, ...besideType];
  if (decides !== undefined && DECIDING.includes(decides) && beside !== undefined) {
    throw refusal(`${decides} without other restrictions at ${path}`, `${beside} beside it`, 'put them into one');
  }
  if (Array.isArray(schema['allOf']) && schema['allOf'].length !== 1) throw unsupported('allOf of several schemas', path);
  const [text, ...more] = present(['format', 'pattern']);
  const lengths = present(['minLength', 'maxLength']);
  if (text !== undefined && more.length + lengths.length > 0) {
    throw refusal(`${text} without other restrictions of the text at ${path}`, `${[...more, ...lengths][0]} beside it`);
  }
  const { format, properties, required } = schema;
  if (format !== undefined && !FORMATS.has(String(format))) throw unsupported(`format ${JSON.stringify(format)}`, path);
  if (Array.isArray(required)) {
    const names = isObject(properties) ? properties : {};
    const undeclared = required.find((name) => !Object.hasOwn(names, String(name)));
    if (undeclared !== undefined)
      throw refusal(`required properties at ${path} that are declared`, JSON.stringify(undeclared), 'declare it in properties');
  }
}

function unsupported(what: string, path: string) {
  return refusal(`a JSON schema whose keywords can be enforced`, `${what} at ${path}`, 'leave it out');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
