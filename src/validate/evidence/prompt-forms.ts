/** The target's answers behind their requests, joined in plainer ways than the chat template's. */
import type { Target } from '../../target/target.ts';
import type { Tokenizer } from '../../text/tokenizer.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';
import { recordAnswers } from '../recording/record-answers.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';

/** How request and answer are joined, by name. */
const PLAIN_FORMS: Readonly<Record<string, (request: string) => string>> = {
  'request, newline, answer': (request) => `${request}\n`,
  'request, empty line, answer': (request) => `${request}\n\n`,
  'request, answer': (request) => request,
  'User: request, Assistant: answer': (request) => `User: ${request}\nAssistant: `,
};

export interface PlainFormsOptions {
  readonly target: Target;
  readonly tokenizer: Tokenizer;
  readonly prompts: readonly DiagnosisPrompt[];
  /** The answers under the template, of the same prompts in the same order. */
  readonly sequences: readonly RecordedSequence[];
  readonly signal?: AbortSignal;
}

export interface PlainForm {
  readonly form: string;
  readonly sequences: readonly RecordedSequence[];
}

/** The same answers, so that forms differ in nothing else. */
export async function recordPlainForms(options: PlainFormsOptions): Promise<readonly PlainForm[]> {
  const { prompts, sequences, tokenizer } = options;
  const forms: PlainForm[] = [];
  for (const [form, join] of Object.entries(PLAIN_FORMS)) {
    const recorded = await recordAnswers({
      target: options.target,
      maxTokens: Number.MAX_SAFE_INTEGER,
      sequences: sequences.map((sequence, i) => ({
        id: sequence.id,
        category: sequence.category,
        promptTokens: tokenizer.encode(join(requestText(prompts[i] as DiagnosisPrompt)), { addSpecialTokens: false }),
        answer: sequence.tokens.slice(sequence.answerStart),
      })),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    if (recorded.length === sequences.length) forms.push({ form, sequences: recorded });
  }
  return forms;
}

function requestText({ messages }: DiagnosisPrompt): string {
  return messages.map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content))).join('\n');
}
