/** Request fields that say which language an answer has to belong to. */
import { z } from 'zod';
import type { AnswerStructure } from '../../core/token-rules.ts';
import type { RequestLimits } from '../server-config.ts';
import { boundedArray, isPlainObject } from './bounded.ts';
import { NEUTRAL_STRUCTURE_FIELDS } from './neutral-field.ts';
import { fieldError } from './parse-request.ts';

const MAX_SCHEMA_NAME = 64;

const jsonObject = z.custom<Readonly<Record<string, unknown>>>(isPlainObject).meta({ type: 'object' });

/** Schemas by field name; each description completes the sentence "Expected <field> to be …". */
export function structureFields({ maxGrammarLength, maxChoiceTexts, maxStopLength }: RequestLimits) {
  const source = () => z.string().min(1).max(maxGrammarLength);
  const sourceOf = (what: string) => source().nullish().describe(`${what} of 1 to ${maxGrammarLength} characters`);
  return {
    response_format: z
      .union([
        z.strictObject({ type: z.literal('text') }),
        z.strictObject({ type: z.literal('json_object') }),
        z.strictObject({
          type: z.literal('json_schema'),
          json_schema: z.strictObject({
            name: z.string().min(1).max(MAX_SCHEMA_NAME),
            description: z.string().nullish(),
            schema: jsonObject,
            strict: z.boolean().nullish(),
          }),
        }),
        z.looseObject({ type: z.literal('structural_tag') }),
      ])
      .nullish()
      .describe(
        '{"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": …, "schema": {…}}} ' +
          'or {"type": "structural_tag", …}',
      ),
    structured_outputs: z
      .strictObject({
        json: z.union([jsonObject, source()]).nullish().describe('a JSON schema, as an object or as text'),
        regex: sourceOf('a regular expression'),
        choice: boundedArray(z.string().min(1).max(maxStopLength), maxChoiceTexts)
          .nullish()
          .describe(`a list of 1 to ${maxChoiceTexts} texts, each of 1 to ${maxStopLength} characters`),
        grammar: sourceOf('an EBNF grammar'),
        json_object: z.literal(true).nullish().describe('true'),
        structural_tag: z.union([jsonObject, source()]).nullish().describe('a structural tag, as an object or as text'),
        ...NEUTRAL_STRUCTURE_FIELDS,
      })
      .meta({ minProperties: 1 })
      .nullish()
      .describe('an object with one of json, regex, choice, grammar, json_object, structural_tag'),
  } as const;
}

type StructureFields = z.infer<z.ZodObject<ReturnType<typeof structureFields>>>;

/** What an answer must match, and the field that says so. */
export interface AskedStructure {
  readonly structure: AnswerStructure;
  readonly param: string;
}

/** @throws AppError `invalid_request` for more than one structure, and for one that is too large */
export function toStructure(fields: StructureFields, limits: RequestLimits): AskedStructure | null {
  const asked = [fromResponseFormat(fields.response_format), fromStructuredOutputs(fields.structured_outputs)].filter(
    (structure) => structure !== null,
  );
  const [first, second] = asked;
  if (first === undefined) return null;
  if (second !== undefined) throw fieldError(second.param, 'absent beside response_format', fields.structured_outputs);
  checkSize(first, limits);
  return first;
}

function fromResponseFormat(format: StructureFields['response_format']): AskedStructure | null {
  switch (format?.type) {
    case 'json_object':
      return { structure: { kind: 'json-object' }, param: 'response_format' };
    case 'json_schema': {
      const schema = JSON.stringify(format.json_schema.schema);
      return { structure: { kind: 'json-schema', schema }, param: 'response_format.json_schema.schema' };
    }
    case 'structural_tag':
      return { structure: { kind: 'structural-tag', tag: JSON.stringify(format) }, param: 'response_format' };
    default:
      return null;
  }
}

function fromStructuredOutputs(options: StructureFields['structured_outputs']): AskedStructure | null {
  if (options == null) return null;
  const asked = Object.entries(options).filter(([name, value]) => value != null && !(name in NEUTRAL_STRUCTURE_FIELDS));
  if (asked.length !== 1) {
    throw fieldError(
      'structured_outputs',
      'an object with exactly one of json, regex, choice, grammar, json_object, structural_tag',
      options,
    );
  }
  const param = `structured_outputs.${asked[0]![0]}`;
  const { json, regex, choice, grammar, structural_tag: tag } = options;
  if (json != null) return { structure: { kind: 'json-schema', schema: jsonText(json, param) }, param };
  if (regex != null) return { structure: { kind: 'regex', pattern: regex }, param };
  if (choice != null) return { structure: { kind: 'choice', choices: choice }, param };
  if (grammar != null) return { structure: { kind: 'grammar', ebnf: grammar }, param };
  if (tag != null) return { structure: { kind: 'structural-tag', tag: jsonText(tag, param) }, param };
  return { structure: { kind: 'json-object' }, param };
}

function jsonText(value: string | Readonly<Record<string, unknown>>, param: string): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  try {
    if (isPlainObject(JSON.parse(value))) return value;
  } catch {
    // Told below, as for any other text that is no object.
  }
  throw fieldError(param, 'an object, or the text of one', value);
}

function checkSize({ structure, param }: AskedStructure, { maxGrammarLength }: RequestLimits): void {
  const length = sourceLength(structure);
  if (length <= maxGrammarLength) return;
  throw fieldError(param, `of at most ${maxGrammarLength} characters`, length);
}

function sourceLength(structure: AnswerStructure): number {
  switch (structure.kind) {
    case 'json-object':
      return 0;
    case 'json-schema':
      return structure.schema.length;
    case 'regex':
      return structure.pattern.length;
    case 'choice':
      return structure.choices.reduce((sum, choice) => sum + choice.length, 0);
    case 'grammar':
      return structure.ebnf.length;
    case 'structural-tag':
      return structure.tag.length;
  }
}
