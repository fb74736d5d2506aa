/** What an answer with tools must match, as one of XGrammar's structural tags. */
import { AppError } from '../../core/app-error.ts';
import type { AnswerStructure } from '../../core/token-rules.ts';
import { CLOSE_CALL, OPEN_CALL } from './tool-call-parser.ts';
import type { Tool, ToolUse } from './tools.ts';

/** A part of a structural tag. */
type Format = Readonly<Record<string, unknown>>;

/**
 * Calls alone where one is required. Where the model may also answer, calls bind it only if a function is `strict` or the
 * answer has a structure of its own: then it is either that, or one call.
 * @param structure what an answer that makes no call must match; null: anything
 * @throws AppError `invalid_request` for structural tags, which say themselves where text is free, beside tools
 */
export function toolStructure({ tools, choice, parallel }: ToolUse, structure: AnswerStructure | null): AnswerStructure | null {
  const tags = tools.map(callTag);
  if (choice === 'required') {
    return structuralTag({
      type: 'tags_with_separator',
      tags,
      separator: '\n',
      at_least_one: true,
      stop_after_first: !parallel,
    });
  }
  if (structure !== null) return structuralTag({ type: 'or', elements: [toFormat(structure), ...tags] });
  if (!tools.some((tool) => tool.function.strict === true)) return null;
  return structuralTag({ type: 'triggered_tags', triggers: [OPEN_CALL], tags });
}

function callTag({ function: { name, parameters } }: Tool): Format {
  return {
    type: 'tag',
    begin: `${OPEN_CALL}\n{"name": ${JSON.stringify(name)}, "arguments": `,
    content: { type: 'json_schema', json_schema: argumentSchema(parameters) },
    end: `}\n${CLOSE_CALL}`,
  };
}

/** A function without parameters takes none; one that does not say so takes an object all the same. */
function argumentSchema(parameters: Tool['function']['parameters']): object {
  if (parameters == null) return { type: 'object', properties: {}, additionalProperties: false };
  const isElsewhere = ['$ref', 'anyOf', 'oneOf', 'allOf', 'const', 'enum'].some((name) => name in parameters);
  return isElsewhere ? parameters : { ...parameters, type: 'object' };
}

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
      throw new AppError(
        'invalid_request',
        'Expected no structural tag beside tools, got one. Put the tools in it, or leave one of them out.',
        { details: { param: 'tools', code: 'invalid_value' } },
      );
  }
}
