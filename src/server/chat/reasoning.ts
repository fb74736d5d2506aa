/** Whether and how a model's answer has reasoning in it. */
import type { ReasoningTokens } from '../../core/token-rules.ts';
import type { ChatMessage, Engine } from '../../engine/engine.ts';
import { CLOSE_REASONING, OPEN_REASONING, type ReasoningStart, type ReasoningTagTokens } from './reasoning-splitter.ts';

/** `auto`: where the tags are tokens of the model; `qwen3`: in any case; `none`: tags stay in the text. */
export type ReasoningParser = 'auto' | 'qwen3' | 'none';

/** What a prompt lets expect of the answer's reasoning. */
export interface ExpectedReasoning {
  readonly start: ReasoningStart;
  /** Null: the tags are told by their text. */
  readonly tags: ReasoningTagTokens | null;
}

/** @returns null when answers are not parted */
export function expectedReasoning(
  parser: ReasoningParser,
  engine: Pick<Engine, 'text'>,
  prompt: { readonly text: string; readonly continued: ChatMessage | null },
): ExpectedReasoning | null {
  if (parser === 'none') return null;
  const tags = tagTokens(engine);
  if (tags === null && parser === 'auto') return null;
  return { start: prompt.continued === null ? startOf(prompt.text) : continuedStart(prompt.continued.content), tags };
}

/** From where on a structure applies; null: from the first token. */
export function structureAfter(reasoning: ExpectedReasoning | null): ReasoningTokens | null {
  if (reasoning === null || reasoning.start === 'closed' || reasoning.tags === null) return null;
  const { open, close } = reasoning.tags;
  return { begin: reasoning.start === 'open' ? null : open, end: close };
}

/** Null unless both are tokens. */
function tagTokens({ text }: Pick<Engine, 'text'>): ReasoningTagTokens | null {
  const [open, close] = [text.tokenId(OPEN_REASONING), text.tokenId(CLOSE_REASONING)];
  return open === null || close === null ? null : { open, close };
}

/** Templates end the prompt with the tag that they have opened or closed, but for blanks. */
function startOf(prompt: string): ReasoningStart {
  const text = prompt.trimEnd();
  if (text.endsWith(OPEN_REASONING)) return 'open';
  return text.endsWith(CLOSE_REASONING) ? 'closed' : 'undecided';
}

/** An answer that goes on has either not got past its reasoning, or past the place for it. */
function continuedStart(begun: string): ReasoningStart {
  return begun.lastIndexOf(OPEN_REASONING) > begun.lastIndexOf(CLOSE_REASONING) ? 'open' : 'closed';
}
