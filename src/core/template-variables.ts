/** Which variables of a chat template its users may set. */

/** What whoever renders gives to a template. */
export const RENDERED_VARIABLES: ReadonlySet<string> = new Set([
  'messages',
  'tools',
  'documents',
  'add_generation_prompt',
  'continue_final_message',
  'chat_template',
  'tokenize',
]);

/** Clients send it to any model; for one that does not reason it changes nothing. */
export const THINKING = 'enable_thinking';

/** @param read names that a template reads */
export function settableVariables(read: Iterable<string>): readonly string[] {
  return [...new Set([THINKING, ...read])].filter((name) => !RENDERED_VARIABLES.has(name));
}
