import type { TemplateMessage } from '../../text/chat-template.ts';

/** A request whose greedy answer is recorded. */
export interface DiagnosisPrompt {
  readonly id: string;
  /** Kind of task; prompts of one category are reported together. */
  readonly category: string;
  readonly messages: readonly TemplateMessage[];
}
