/** Finds the chat template of a model folder. */
import { join } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { isJsonObject, type JsonObject, parseJsonObject, readOptionalFile, specialTokenText } from './tokenizer-files.ts';

const SPECIAL_TOKENS = ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token'] as const;

export interface ChatTemplateSource {
  /** Templates by name; a single one is called `default`. Empty when the folder has none. */
  readonly templates: ReadonlyMap<string, string>;
  /** What templates see as `bos_token`, `eos_token` and so on; names without a token are left out. */
  readonly specialTokens: Readonly<Record<string, string>>;
}

/**
 * Looks in the order of transformers: `chat_template.jinja`, then `chat_template.json`, then `tokenizer_config.json`.
 * @throws AppError `invalid_checkpoint` when one of them cannot be read
 */
export async function readChatTemplateSource(folder: string): Promise<ChatTemplateSource> {
  const config = (await readObject(folder, 'tokenizer_config.json')) ?? {};
  const specialTokens = Object.fromEntries(
    SPECIAL_TOKENS.flatMap((name) => {
      const text = specialTokenText(config[name]);
      return text === null ? [] : [[name, text]];
    }),
  );
  const file = await readOptionalFile(join(folder, 'chat_template.jinja'));
  if (file !== null) return { templates: new Map([['default', file]]), specialTokens };
  const legacy = await readObject(folder, 'chat_template.json');
  return { templates: namedTemplates(legacy?.['chat_template'] ?? config['chat_template']), specialTokens };
}

async function readObject(folder: string, name: string): Promise<JsonObject | null> {
  const path = join(folder, name);
  const text = await readOptionalFile(path);
  return text === null ? null : parseJsonObject(text, path);
}

/** @param value a template, a list of {name, template}, or nothing */
function namedTemplates(value: unknown): ReadonlyMap<string, string> {
  if (value === undefined || value === null) return new Map();
  if (typeof value === 'string') return new Map([['default', value]]);
  if (Array.isArray(value)) return new Map(value.map(namedTemplate));
  throw unusable();
}

function namedTemplate(entry: unknown): [string, string] {
  if (isJsonObject(entry)) {
    const { name, template } = entry as { readonly name?: unknown; readonly template?: unknown };
    if (typeof name === 'string' && typeof template === 'string') return [name, template];
  }
  throw unusable();
}

function unusable(): AppError {
  return new AppError(
    'invalid_checkpoint',
    'expected chat_template to be a string or a list of {name, template}, got another value; correct it',
  );
}
