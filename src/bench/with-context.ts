import type { DiagnosisPrompt } from '../validate/recording/prompt.ts';

/** Of texts in English. */
const CHARACTERS_PER_TOKEN = 4;

/** Questions that others asked before, as a long beginning: texts that people wrote, as random tokens would be drafted too well. */
export function withContext(
  prompt: DiagnosisPrompt,
  prompts: readonly DiagnosisPrompt[],
  tokens: number,
): DiagnosisPrompt['messages'] {
  if (tokens === 0) return prompt.messages;
  const lines: string[] = [];
  let characters = 0;
  const from = prompts.indexOf(prompt) + 1;
  for (let i = 0; characters < tokens * CHARACTERS_PER_TOKEN; i++) {
    const line = `- ${prompts[(from + i) % prompts.length]!.messages.at(-1)!.content}`;
    lines.push(line);
    characters += line.length + 1;
  }
  const [last] = prompt.messages.slice(-1);
  return [
    ...prompt.messages.slice(0, -1),
    {
      ...last!,
      content: `These questions were asked before:\n${lines.join('\n')}\n\nNow answer this one only. ${last!.content}`,
    },
  ];
}
