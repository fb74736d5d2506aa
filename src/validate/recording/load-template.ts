/** The chat template that prompts are rendered by, with the variables that they are given. */
import { AppError } from '../../core/app-error.ts';
import { settableVariables } from '../../core/template-variables.ts';
import { type ChatTemplate, loadChatTemplate } from '../../text/chat-template.ts';

/** @throws AppError `invalid_config` for a variable that the template does not read: misspelt, it would measure another mode */
export async function loadTemplate(folder: string, variables: Readonly<Record<string, unknown>>): Promise<ChatTemplate> {
  const template = await loadChatTemplate(folder);
  const settable = settableVariables(template.variables);
  const unknown = Object.keys(variables).find((name) => !settable.includes(name));
  if (unknown === undefined) return template;
  throw new AppError(
    'invalid_config',
    `Expected variables of the chat template in ${folder}, which are ${settable.join(', ')}, got ${unknown}; correct --chat-template-kwargs`,
  );
}
