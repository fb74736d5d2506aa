import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ChatTemplate, loadChatTemplate } from '../../../src/text/chat-template.ts';

const MESSAGES = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: 'Well, ' },
];
const ECHO =
  '{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';
const OPTIONS = { addGenerationPrompt: false };

function template(source: string, specialTokens: Record<string, string> = {}): ChatTemplate {
  return new ChatTemplate({ templates: new Map([['default', source]]), specialTokens });
}

describe('ChatTemplate', () => {
  it('renders messages and the generation prompt', () => {
    expect(template(ECHO).render(MESSAGES.slice(0, 1), { addGenerationPrompt: true })).toBe('[user] Hi\n[assistant]');
  });

  it('trims blocks and what is before them, as transformers does', () => {
    expect(template('a\n  {% if true %}\nb\n  {% endif %}\nc').render([], OPTIONS)).toBe('a\nb\nc');
  });

  it('gives templates the special tokens, tools and further variables', () => {
    const source =
      "{{ bos_token }}|{{ tools[0].name }}|{{ 'off' if enable_thinking is false }}|{{ 'none' if eos_token is not defined }}";
    const rendered = template(source, { bos_token: '<s>' }).render([], {
      ...OPTIONS,
      tools: [{ name: 'now' }],
      variables: { enable_thinking: false, add_generation_prompt: true },
    });
    expect(rendered).toBe('<s>|now|off|none');
  });

  it('defines absent tools and documents as none', () => {
    const source = "{{ 'tools' if tools is not none }}{{ 'documents' if documents is not none }}";
    expect(template(source).render([], OPTIONS)).toBe('');
    expect(template(source).render([], { ...OPTIONS, tools: [], variables: { documents: [] } })).toBe('toolsdocuments');
  });

  it('does not let variables replace the messages', () => {
    expect(template('{{ messages | length }}').render(MESSAGES, { ...OPTIONS, variables: { messages: [] } })).toBe('2');
  });

  it('knows strftime_now', () => {
    expect(template("{{ strftime_now('%Y') }}").render([], OPTIONS)).toMatch(/^\d{4}$/);
  });

  it('reports what the template says when it refuses', () => {
    expect(() => template("{{ raise_exception('roles must alternate') }}").render(MESSAGES, OPTIONS)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringContaining('"roles must alternate"'),
        details: { param: 'messages' },
      }),
    );
  });

  it('reports a failure inside the template as a matter of the request', () => {
    expect(() => template('{{ messages[0].content + 1 | nonsense }}').render(MESSAGES, OPTIONS)).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    );
  });

  it.each([
    [
      'loops over what a request brings',
      '{% for a in messages %}{% for b in messages %}{% for c in messages %}x{% endfor %}{% endfor %}{% endfor %}',
    ],
    ['loops by itself', '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'],
  ])('ends a template that %s for too long, and goes on with the next request', (_, source) => {
    const limits = { maxRenderMs: 50, maxRenderedLength: 1e9 };
    const slow = new ChatTemplate({ templates: new Map([['default', source]]), specialTokens: {} }, limits);
    const messages = Array.from({ length: 2000 }, () => MESSAGES[0]!);
    const started = performance.now();
    expect(() => slow.render(messages, OPTIONS)).toThrow(
      expect.objectContaining({ code: 'invalid_request', details: { param: 'messages' } }),
    );
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(template(ECHO).render(MESSAGES.slice(0, 1), OPTIONS)).toBe('[user] Hi\n');
  });

  it('refuses what gets too long', () => {
    const limits = { maxRenderMs: 1000, maxRenderedLength: 20 };
    const short = new ChatTemplate({ templates: new Map([['default', ECHO]]), specialTokens: {} }, limits);
    expect(short.render(MESSAGES.slice(0, 1), OPTIONS)).toBe('[user] Hi\n');
    expect(() => short.render(MESSAGES, OPTIONS)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });

  it('gives templates values and not objects of the host', () => {
    const source =
      "{{ messages.constructor }}{{ messages['__proto__'] }}{{ messages[0].content.constructor }}{{ messages[0].toString }}";
    expect(template(source).render(MESSAGES, OPTIONS)).toBe('');
  });

  it('says which variables its templates read', () => {
    const source = [
      '{{ bos_token }}{% for m in messages %}{{ m.role }}{{ loop.index }}{% endfor %}{{ tools | tojson(indent=2) }}',
      '{% macro show(a, b=c) %}{{ a }}{{ b }}{{ d }}{% endmacro %}{{ show(x, b=y) }}{% set z = e %}{{ z }}',
      "{% if thinking is not defined %}{% set thinking = f or 'x' %}{% endif %}{{ thinking }}{{ today | default(strftime_now('%d')) }}",
      "{% for k, v in g.items() %}{{ k }}{{ v }}{% endfor %}{{ h['i'] }}{{ h[j] }}{{ k2 if not l and m2 in n }}",
    ].join('');
    const known = template(source, { bos_token: '<s>' }).variables;
    expect([...known].toSorted()).toEqual(
      ['messages', 'tools', 'c', 'd', 'x', 'y', 'e', 'thinking', 'f', 'today', 'g', 'h', 'j', 'k2', 'l', 'm2', 'n'].toSorted(),
    );
  });

  it('refuses a template that does not parse', () => {
    expect(() => template('{% for %}')).toThrow(expect.objectContaining({ code: 'invalid_checkpoint' }));
  });

  describe('continuing the last message', () => {
    const continued = { ...OPTIONS, continueFinalMessage: true };

    it('ends where the content ends', () => {
      expect(template(ECHO).render(MESSAGES, continued)).toBe('[user] Hi\n[assistant] Well, ');
    });

    it('follows a template that trims contents', () => {
      const trimming = ECHO.replace('m.content', 'm.content | trim');
      expect(template(trimming).render(MESSAGES, continued)).toBe('[user] Hi\n[assistant] Well,');
    });

    it.each([
      ['a generation prompt', ECHO, { ...continued, addGenerationPrompt: true }, MESSAGES],
      ['a message without text', ECHO, continued, [{ role: 'assistant', content: null }]],
      ['a template that hides the message', 'x', continued, MESSAGES],
    ])('refuses %s', (_, source, options, messages) => {
      expect(() => template(source).render(messages, options)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
    });
  });
});

describe('loadChatTemplate', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chat-template-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const write = (name: string, content: object | string) =>
    writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  const render = async (tools?: object[]) =>
    (await loadChatTemplate(folder)).render([], { ...OPTIONS, ...(tools === undefined ? {} : { tools }) });

  it('takes chat_template.jinja before chat_template.json before tokenizer_config.json', async () => {
    await write('tokenizer_config.json', { chat_template: 'config' });
    expect(await render()).toBe('config');
    await write('chat_template.json', { chat_template: 'json' });
    expect(await render()).toBe('json');
    await write('chat_template.jinja', 'jinja');
    expect(await render()).toBe('jinja');
  });

  it('reads special tokens written as strings and as objects', async () => {
    await write('tokenizer_config.json', {
      chat_template: "{{ bos_token }}{{ eos_token }}{{ 'none' if pad_token is not defined }}",
      bos_token: '<s>',
      eos_token: { content: '</s>' },
      pad_token: null,
    });
    expect(await render()).toBe('<s></s>none');
  });

  it('takes the named default, and tool_use with tools', async () => {
    await write('tokenizer_config.json', {
      chat_template: [
        { name: 'tool_use', template: 'tools' },
        { name: 'default', template: 'plain' },
      ],
    });
    expect(await render()).toBe('plain');
    expect(await render([{ name: 'now' }])).toBe('tools');
  });

  it('refuses to render without a template', async () => {
    await expect(render()).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('got none') });
    await write('tokenizer_config.json', { chat_template: [{ name: 'rag', template: 'x' }] });
    await expect(render()).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('got rag') });
  });

  it.each([{ chat_template: 7 }, { chat_template: [{ name: 'default' }] }])('refuses %j', async (config) => {
    await write('tokenizer_config.json', config);
    await expect(render()).rejects.toMatchObject({ code: 'invalid_checkpoint' });
  });
});
