/** Prompt files: one JSON object a line, `{"messages": […], "id"?, "category"?}` or `{"prompt": "…", …}`. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import type { DiagnosisPrompt } from './prompt.ts';

const messageSchema = z.looseObject({ role: z.string(), content: z.string() });
const lineSchema = z.union([
  z.looseObject({ id: z.string().optional(), category: z.string().optional(), messages: z.array(messageSchema).min(1) }),
  z.looseObject({ id: z.string().optional(), category: z.string().optional(), prompt: z.string().min(1) }),
]);

export interface ReadPromptsOptions {
  /** Take so many, evenly from all categories; null: all. */
  readonly limit: number | null;
  /** Decides which of a category are taken; 0: the first. */
  readonly seed: number;
}

/** @throws AppError `invalid_config` naming the file and the line, also when two prompts have one id */
export function readPrompts(file: string, { limit, seed }: ReadPromptsOptions): readonly DiagnosisPrompt[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new AppError('invalid_config', `Cannot read the prompts ${file}: ${(cause as Error).message}; check the path`, {
      cause,
    });
  }
  const prompts = parseLines(text, file);
  if (prompts.length < 2) {
    throw new AppError(
      'invalid_config',
      `Expected at least 2 prompts in ${file}, got ${prompts.length}; differences are judged by how they vary over prompts`,
    );
  }
  return limit === null ? prompts : takeEvenly(seed === 0 ? prompts : shuffled(prompts, seed), limit);
}

/** What is measured is told apart by ids, so each may occur once. */
function parseLines(text: string, file: string): readonly DiagnosisPrompt[] {
  const prompts: DiagnosisPrompt[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const prompt = parseLine(line, index + 1, file);
    const earlier = lineOf.get(prompt.id);
    if (earlier !== undefined) {
      throw new AppError(
        'invalid_config',
        `Expected prompts with different ids in ${file}, got ${prompt.id} in lines ${earlier} and ${index + 1}; rename one ` +
          '(a line without id is called after its number)',
      );
    }
    lineOf.set(prompt.id, index + 1);
    prompts.push(prompt);
  }
  return prompts;
}

function parseLine(line: string, number: number, file: string): DiagnosisPrompt {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch (cause) {
    throw new AppError('invalid_config', `Expected JSON in line ${number} of ${file}: ${(cause as Error).message}`, { cause });
  }
  const parsed = lineSchema.safeParse(json);
  if (!parsed.success) {
    throw new AppError(
      'invalid_config',
      `Expected {"messages": [{"role", "content"}]} or {"prompt": text} in line ${number} of ${file}, got something else`,
      { cause: parsed.error },
    );
  }
  const { data } = parsed;
  const messages = 'messages' in data ? data.messages : [{ role: 'user', content: data.prompt }];
  return {
    id: data.id ?? `line-${number}`,
    category: data.category ?? 'all',
    messages: messages as DiagnosisPrompt['messages'],
  };
}

/** The first of each category, then the second of each, and so on. */
export function takeEvenly<Prompt extends DiagnosisPrompt>(prompts: readonly Prompt[], limit: number): readonly Prompt[] {
  const byCategory = groupByCategory(prompts);
  const taken: Prompt[] = [];
  for (let round = 0; taken.length < Math.min(limit, prompts.length); round++) {
    for (const members of byCategory.values()) {
      const prompt = members[round];
      if (prompt !== undefined && taken.length < limit) taken.push(prompt);
    }
  }
  return taken;
}

function groupByCategory<Prompt extends DiagnosisPrompt>(prompts: readonly Prompt[]): ReadonlyMap<string, readonly Prompt[]> {
  const groups = new Map<string, Prompt[]>();
  for (const prompt of prompts) groups.set(prompt.category, [...(groups.get(prompt.category) ?? []), prompt]);
  return groups;
}

/** Fisher and Yates's shuffle, driven by a linear congruential generator (Numerical Recipes' constants). */
function shuffled(prompts: readonly DiagnosisPrompt[], seed: number): readonly DiagnosisPrompt[] {
  const result = [...prompts];
  let state = seed >>> 0;
  for (let i = result.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [result[i], result[j]] = [result[j] as DiagnosisPrompt, result[i] as DiagnosisPrompt];
  }
  return result;
}
