import { describe, expect, it } from 'vitest';
import { ChatTemplate } from '../../../src/text/chat-template.ts';
import { promptForms } from '../../../src/validate/evidence/prompt-forms.ts';

const messages = [{ role: 'user', content: 'Hi' }];
const forms = (source: string, variables = {}) =>
  promptForms(new ChatTemplate({ templates: new Map([['default', source]]), specialTokens: {} }), messages, variables);
/** As Qwen3's: thinking is on unless it is switched off. */
const SWITCHED =
  '{{ messages[0].content }}|{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}';

describe('prompt forms', () => {
  it('have thinking off where the template knows it, and on only where that changes something', () => {
    const switched = forms(SWITCHED).filter(({ fault }) => fault === 'thinking-mode');
    expect(switched.map(({ name, write }) => [name, write(messages)])).toEqual([
      ['enable_thinking false', 'Hi|<think></think>'],
    ]);
    const off = SWITCHED.replace('is defined and enable_thinking is false', 'is not defined or not enable_thinking');
    expect(
      forms(off)
        .filter(({ fault }) => fault === 'thinking-mode')
        .map(({ name }) => name),
    ).toEqual(['enable_thinking true']);
  });

  it('have thinking on where prompts are served with it off', () => {
    const switched = forms(SWITCHED, { enable_thinking: false }).filter(({ fault }) => fault === 'thinking-mode');
    expect(switched.map(({ name, write }) => [name, write(messages)])).toEqual([['enable_thinking true', 'Hi|']]);
  });

  it('are the plain ones alone where it does not', () => {
    const plain = forms('<u>{{ messages[0].content }}</u>');
    expect(new Set(plain.map(({ fault }) => fault))).toEqual(new Set(['no-chat-template']));
    expect(plain.map(({ write }) => write(messages))).toContain('Hi\n');
  });
});
