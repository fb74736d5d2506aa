import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadTemplate } from '../../../src/validate/recording/load-template.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';
import { expectAppError } from '../checkpoint/expect-app-error.ts';

async function folderWith(template: string): Promise<string> {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify({ chat_template: template }));
  return folder;
}

it('prompts are rendered with variables that the template reads, and with enable_thinking', async () => {
  const folder = await folderWith('{{ messages[0].content }} {{ mood }}');
  const variables = { mood: 'calm', enable_thinking: false };
  const template = await loadTemplate(folder, variables);
  expect(template.render([{ role: 'user', content: 'Hi' }], { addGenerationPrompt: true, variables })).toBe('Hi calm');
});

it.each([{ enable_thinkng: false }, { messages: 'x' }])('prompts are not rendered with %j', async (variables) => {
  const folder = await folderWith('{{ messages[0].content }}');
  const [name = ''] = Object.keys(variables);
  await expectAppError(
    loadTemplate(folder, variables),
    'invalid_config',
    new RegExp(`which are enable_thinking, got ${name}; correct --chat-template-kwargs`),
  );
});
