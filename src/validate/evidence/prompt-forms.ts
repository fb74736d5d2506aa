/** The target's answers behind their requests, written otherwise than serving writes them. */
import type { Target } from '../../target/target.ts';
import type { ChatTemplate } from '../../text/chat-template.ts';
import type { Tokenizer } from '../../text/tokenizer.ts';
import type { TemplateVariables } from '../measure/open-measured.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';
import { recordAnswers } from '../recording/record-answers.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';

/** One way to write requests. */
export interface PromptForm {
  readonly name: string;
  /** What training did wrong if a drafter does better behind it. */
  readonly fault: 'no-chat-template' | 'thinking-mode';
  readonly write: (messages: DiagnosisPrompt['messages']) => string;
}

/** How request and answer are joined without a template. */
const PLAIN_FORMS: Readonly<Record<string, (request: string) => string>> = {
  'request, newline, answer': (request) => `${request}\n`,
  'request, empty line, answer': (request) => `${request}\n\n`,
  'request, answer': (request) => request,
  'User: request, Assistant: answer': (request) => `User: ${request}\nAssistant: `,
};

/**
 * The plain forms, and the chat template with thinking on and off where it knows the variable.
 * @param messages an example, on which a variable that is known changes something
 * @param variables that prompts are served with
 */
export function promptForms(
  template: Pick<ChatTemplate, 'render'>,
  messages: DiagnosisPrompt['messages'],
  variables: TemplateVariables = {},
): readonly PromptForm[] {
  const render = (thinking?: boolean) => (asked: DiagnosisPrompt['messages']) =>
    template.render(asked, {
      addGenerationPrompt: true,
      variables: thinking === undefined ? variables : { ...variables, enable_thinking: thinking },
    });
  const served = render()(messages);
  return [
    ...Object.entries(PLAIN_FORMS).map(
      ([name, join]): PromptForm => ({ name, fault: 'no-chat-template', write: (asked) => join(requestText(asked)) }),
    ),
    ...[true, false]
      .map((on): PromptForm => ({ name: `enable_thinking ${on}`, fault: 'thinking-mode', write: render(on) }))
      .filter(({ write }) => write(messages) !== served),
  ];
}

export interface RecordFormOptions {
  readonly target: Target;
  readonly tokenizer: Tokenizer;
  readonly prompts: readonly DiagnosisPrompt[];
  /** The answers as served, of the same prompts in the same order. */
  readonly sequences: readonly RecordedSequence[];
  readonly signal?: AbortSignal;
}

/**
 * The same answers, so that forms differ in nothing else.
 * @returns null when some of them do not fit the context
 */
export async function recordForm(
  { write }: PromptForm,
  { target, tokenizer, prompts, sequences, signal }: RecordFormOptions,
): Promise<readonly RecordedSequence[] | null> {
  const recorded = await recordAnswers({
    target,
    maxTokens: Number.MAX_SAFE_INTEGER,
    sequences: sequences.map((sequence, i) => ({
      id: sequence.id,
      category: sequence.category,
      promptTokens: tokenizer.encode(write((prompts[i] as DiagnosisPrompt).messages), { addSpecialTokens: false }),
      answer: sequence.tokens.slice(sequence.answerStart),
    })),
    ...(signal === undefined ? {} : { signal }),
  });
  return recorded.length === sequences.length ? recorded : null;
}

function requestText(messages: DiagnosisPrompt['messages']): string {
  return messages.map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content))).join('\n');
}
