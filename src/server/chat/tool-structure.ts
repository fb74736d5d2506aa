/** What an answer with tools must match, as one of XGrammar's structural tags. */
import type { AnswerStructure } from '../../core/token-rules.ts';
import { CLOSE_CALL, OPEN_CALL } from './tool-call-parser.ts';
import type { Tool, ToolUse } from './tools.ts';

/** A part of a structural tag. */
type Format = Readonly<Record<string, unknown>>;

/**
 * Calls alone where one is required. Where the model may also answer, calls bind it only if a function is `strict` or the
 * answer has a structure of its own, which then holds for an answer that makes no call.
 * @param structure what an answer that makes no call must match; null: anything
 */
export function toolStructure({ tools, choice, parallel }: ToolUse, structure: AnswerStructure | null): AnswerStructure | null {
  const calls: Format = {
    type: 'tags_with_separator',
    tags: tools.map(callTag),
    separator: '\n',
    at_least_one: true,
    stop_after_first: !parallel,
  };
  if (choice === 'required') return structuralTag(calls);
  if (structure !== null) return structuralTag({ type: 'or', elements: [toFormat(structure), calls] });
  if (!tools.some((tool) => tool.function.strict === true)) return null;
  return structuralTag({ type: 'triggered_tags', triggers: [OPEN_CALL], tags: tools.map(callTag) });
}

function callTag({ function: { name, parameters } }: Tool): Format {
  return {
    type: 'tag',
    begin: `${OPEN_CALL}\n{"name": ${JSON.stringify(name)}, "arguments": `,
    // A function without parameters takes none.
    content: { type: 'json_schema', json_schema: parameters == null ? NO_PARAMETERS : { ...parameters, type: 'object' } },
    end: `}\n${CLOSE_CALL}`,
  };
}

const NO_PARAMETERS = { type: 'object', properties: {}, additionalProperties: false } as const;

function structuralTag(format: Format): AnswerStructure {
  return { kind: 'structural-tag', tag: JSON.stringify({ type: 'structural_tag', format }) };
}

function toFormat(structure: AnswerStructure): Format {
  switch (structure.kind) {
    case 'json-object':
      return { type: 'json_schema', json_schema: { type: 'object' } };
    case 'json-schema':
      return { type: 'json_schema', json_schema: JSON.parse(structure.schema) };
    case 'regex':
      return { type: 'regex', pattern: structure.pattern };
    case 'choice':
      return { type: 'or', elements: structure.choices.map((value) => ({ type: 'const_string', value })) };
    case 'grammar':
      return { type: 'grammar', grammar: structure.ebnf };
    case 'structural-tag':
      return tagFormat(JSON.parse(structure.tag));
  }
}

/** Structural tags come in XGrammar's format, and in the older one that lists them with what triggers them. */
interface ParsedTag {
  readonly format?: Format;
  readonly structures?: readonly { readonly begin: string; readonly schema: object; readonly end: string }[];
  readonly triggers?: readonly string[];
}

function tagFormat({ format, structures = [], triggers = [] }: ParsedTag): Format {
  if (format !== undefined) return format;
  const tags = structures.map(({ begin, schema, end }) => ({
    type: 'tag',
    begin,
    content: { type: 'json_schema', json_schema: schema },
    end,
  }));
  return { type: 'triggered_tags', triggers, tags };
}
