/** Chat messages to prompt text, by the Jinja template that the model was trained with. */
import { Template } from '@huggingface/jinja';
import { AppError } from '../core/app-error.ts';
import { runBounded } from './bounded-run.ts';
import { type ChatTemplateSource, readChatTemplateSource } from './chat-template-source.ts';
import { templateVariables } from './chat-template-variables.ts';

/** Most templates read `role` and `content`; some also `tool_calls`, `reasoning_content`, `name`. */
export interface TemplateMessage {
  readonly role: string;
  readonly content?: unknown;
}

export interface RenderOptions {
  /** End with what opens the assistant's answer. */
  readonly addGenerationPrompt: boolean;
  /** End inside the last message, so that the model goes on with it. */
  readonly continueFinalMessage?: boolean;
  /** Function descriptions in OpenAI's format. */
  readonly tools?: readonly object[];
  /** Further variables that the template may know, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** Marks the end of the last message. The space shows whether the template trims contents. */
const CONTINUE_MARK = 'CONTINUE_FINAL_MESSAGE_TAG ';

/** A template has loops over what a request brings, and may nest them; real ones need milliseconds for a whole context. */
const MAX_RENDER_MS = 2000;
/** No context is as long: a template that makes more out of a request repeats it. */
const MAX_RENDERED_LENGTH = 2 ** 25;

export interface ChatTemplateLimits {
  readonly maxRenderMs: number;
  readonly maxRenderedLength: number;
}

/** Made by `loadChatTemplate`. Immutable. */
export class ChatTemplate {
  /** Names that the templates read and do not make themselves, `messages` and `tools` among them. */
  readonly variables: ReadonlySet<string>;
  readonly #templates: ReadonlyMap<string, Template>;
  readonly #specialTokens: Readonly<Record<string, string>>;
  readonly #limits: ChatTemplateLimits;

  /** @throws AppError `invalid_checkpoint` when a template does not parse */
  constructor(
    { templates, specialTokens }: ChatTemplateSource,
    limits: ChatTemplateLimits = { maxRenderMs: MAX_RENDER_MS, maxRenderedLength: MAX_RENDERED_LENGTH },
  ) {
    this.#templates = new Map([...templates].map(([name, source]) => [name, parse(name, source)]));
    this.#specialTokens = specialTokens;
    this.#limits = limits;
    const names = [...this.#templates.values()].flatMap((template) => [...templateVariables(template)]);
    this.variables = new Set(names.filter((name) => !Object.hasOwn(specialTokens, name)));
  }

  /**
   * Renders as transformers' `apply_chat_template` does: blocks trimmed, special tokens as variables, `raise_exception` and
   * `strftime_now` as functions. With tools, the template named `tool_use` is taken where there is one. Templates compute with
   * values of their own kinds and reach neither files nor functions of the host; time and length of a rendering are bounded.
   * @throws AppError `invalid_request` when the model has no template, or the template does not accept the messages or takes
   *   too long over them
   */
  render(messages: readonly TemplateMessage[], options: RenderOptions): string {
    const template = this.#select(options.tools !== undefined);
    const last = messages.at(-1);
    if (options.continueFinalMessage !== true || last === undefined) return this.#run(template, messages, options);
    if (options.addGenerationPrompt || typeof last.content !== 'string') {
      throw new AppError(
        'invalid_request',
        'expected a last message with text and no generation prompt, to continue it; change the options',
        {
          details: { param: 'messages' },
        },
      );
    }
    const marked = [...messages.slice(0, -1), { ...last, content: last.content + CONTINUE_MARK }];
    return cutAtMark(this.#run(template, marked, options));
  }

  #select(withTools: boolean): Template {
    const template = (withTools ? this.#templates.get('tool_use') : undefined) ?? this.#templates.get('default');
    if (template !== undefined) return template;
    const names = [...this.#templates.keys()].join(', ');
    throw new AppError(
      'invalid_request',
      `expected a chat template named default in the model folder, got ${names === '' ? 'none' : names}; send a prompt to /v1/completions instead`,
      { details: { param: 'messages' } },
    );
  }

  #run(
    template: Template,
    messages: readonly TemplateMessage[],
    { addGenerationPrompt, tools, variables }: RenderOptions,
  ): string {
    const values = {
      // transformers always defines these two: templates ask `tools is not none`.
      documents: null,
      ...this.#specialTokens,
      ...variables,
      tools: tools ?? null,
      messages,
      add_generation_prompt: addGenerationPrompt,
    };
    const text = this.#bounded(() => template.render(values));
    if (text !== null && text.length <= this.#limits.maxRenderedLength) return text;
    throw new AppError(
      'invalid_request',
      "expected messages that the model's chat template renders in bounded time and length, got some that it does not; shorten them",
      { details: { param: 'messages' } },
    );
  }

  /** Null when it takes too long. */
  #bounded(render: () => string): string | null {
    try {
      return runBounded(render, this.#limits.maxRenderMs);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new AppError(
        'invalid_request',
        `expected messages that the model's chat template accepts, got "${reason}"; change the messages`,
        {
          cause,
          details: { param: 'messages' },
        },
      );
    }
  }
}

/** Loads the chat template of a model folder; a folder without one gives a template that refuses to render. */
export async function loadChatTemplate(folder: string): Promise<ChatTemplate> {
  return new ChatTemplate(await readChatTemplateSource(folder));
}

function parse(name: string, source: string): Template {
  try {
    return new Template(source);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AppError(
      'invalid_checkpoint',
      `expected a chat template that parses, got "${reason}" in ${name}; correct the template`,
      { cause },
    );
  }
}

function cutAtMark(text: string): string {
  const end = text.lastIndexOf(CONTINUE_MARK.trimEnd());
  if (end < 0) {
    throw new AppError(
      'invalid_request',
      "expected the chat template to show the last message, got a text without it; this model's answers cannot be continued",
      {
        details: { param: 'messages' },
      },
    );
  }
  const kept = text.slice(0, end);
  return text.startsWith(CONTINUE_MARK, end) ? kept : kept.trimEnd();
}
