/** From a zod issue to an OpenAI error that names the field, what was expected and what came. */
import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import { UNSUPPORTED } from './neutral-field.ts';

const MAX_SHOWN = 60;

/** @throws AppError `invalid_request` whose `details.param` is the first field that does not fit. */
export function parseRequest<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.infer<Schema> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw toAppError(schema, body, toldIssue(body, result.error.issues));
}

/**
 * A field that does not exist is told before the ones that are wrong: it is often the reason for them. The reason for it, in turn,
 * may be another `type` of the object that it is in.
 */
function toldIssue(body: unknown, issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue {
  const unknown = issues.find((issue) => issue.code === 'unrecognized_keys');
  if (unknown === undefined) return issues[0]!;
  const typePath = [...unknown.path, 'type'];
  const otherType = issues.find(({ path }) => path.join() === typePath.join());
  return otherType === undefined || valueAt(body, typePath) === undefined ? unknown : otherType;
}

/** An `invalid_request` about one field. */
export function fieldError(param: string, expected: string, value: unknown, code = 'invalid_value'): AppError {
  const advice = value === undefined ? 'Send it.' : 'Correct it.';
  return new AppError('invalid_request', `Expected ${param} to be ${expected}, got ${show(value)}. ${advice}`, {
    details: { param, code },
  });
}

function toAppError(schema: z.ZodObject, body: unknown, issue: z.core.$ZodIssue): AppError {
  if (issue.code === 'unrecognized_keys') {
    const param = paramName([...issue.path, issue.keys[0]!]);
    return new AppError('invalid_request', `Expected only known fields, got ${param}. Remove it.`, {
      details: { param, code: 'unknown_parameter' },
    });
  }
  if (issue.path.length === 0) {
    return new AppError('invalid_request', `Expected a JSON object, got ${show(body)}. Send an object.`, {
      details: { code: 'invalid_json' },
    });
  }
  const param = paramName(issue.path);
  const value = valueAt(body, issue.path);
  const { expected, depth } = descriptionAt(schema, issue.path);
  // What is described may be the list or object around the value.
  const described = paramName(issue.path.slice(0, depth));
  const got = described === param ? show(value) : `${show(value)} as ${param}`;
  const message = `Expected ${described} to be ${expected}, got ${got}`;
  const refuse = (code: string, advice: string) =>
    new AppError('invalid_request', message + advice, { details: { param, code } });
  if (issue.code === 'custom' && issue.params?.['unsupported'] === UNSUPPORTED.unsupported) {
    return refuse('unsupported_parameter', ': this server does not support it. Leave it out.');
  }
  return value === undefined ? refuse('missing_parameter', '. Send it.') : refuse('invalid_value', '. Correct it.');
}

/** The description nearest to the value, and the length of the path to what it describes. */
function descriptionAt(schema: z.ZodType, path: readonly PropertyKey[]): { readonly expected: string; readonly depth: number } {
  let nearest = { expected: 'a valid value', depth: path.length };
  let current: z.core.$ZodType | undefined = schema;
  for (const [i, key] of path.entries()) {
    current = current && child(unwrap(current), key);
    if (current === undefined) break;
    const { description } = current as z.ZodType;
    if (description !== undefined) nearest = { expected: description, depth: i + 1 };
  }
  return nearest;
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return unwrap(schema.unwrap());
  return schema instanceof z.ZodPipe ? unwrap(schema.out) : schema;
}

function child(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) return schema.shape[String(key)];
  return schema instanceof z.ZodArray ? schema.element : undefined;
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined),
    body,
  );
}

/** `messages[0].content`, as OpenAI spells it. */
function paramName(path: readonly PropertyKey[]): string {
  return path.reduce<string>((name, key) => {
    if (typeof key === 'number') return `${name}[${key}]`;
    return name === '' ? String(key) : `${name}.${String(key)}`;
  }, '');
}

function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
