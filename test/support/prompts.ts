/** Thirty prompts of five kinds, as people write them to a small chat model. */
export const PROMPT_KINDS = ['explain', 'write', 'list', 'code', 'repeat'] as const;
export type PromptKind = (typeof PROMPT_KINDS)[number];

export interface Prompt {
  readonly kind: PromptKind;
  readonly text: string;
}

const TEXTS: Readonly<Record<PromptKind, readonly string[]>> = {
  explain: [
    'Why is the sky blue?',
    'Explain how a bicycle stays upright.',
    'What is the difference between weather and climate?',
    'How does a refrigerator keep food cold?',
    'What does a compiler do?',
    'Explain what inflation means for a family.',
  ],
  write: [
    'Write a short story about a lighthouse keeper.',
    'Write a polite email that asks for a day off.',
    'Write a poem of four lines about the rain.',
    'Write a product description for a wooden chair.',
    'Write a thank-you note to a teacher.',
    'Write the first paragraph of a mystery novel.',
  ],
  list: [
    'List five vegetables that grow in spring.',
    'Give me six ideas for a rainy weekend.',
    'List the planets of the solar system in order.',
    'Name five countries in South America.',
    'List four rules for a good presentation.',
    'What are five things to pack for a hike?',
  ],
  code: [
    'Write a Python function that reverses a string.',
    'Write a JavaScript function that adds the numbers in an array.',
    'Show a SQL query that counts the rows of a table named orders.',
    'Write a Python program that prints the numbers from 1 to 10.',
    'Write an HTML page with a heading and a paragraph.',
    'Write a Python function that checks whether a number is even.',
  ],
  repeat: [
    'Repeat this sentence three times: The quick brown fox jumps over the lazy dog.',
    'Copy this list exactly: apples, pears, plums, cherries, grapes, figs.',
    'Correct the spelling and give back the text: "I recieved the pakage on wensday and it was grate."',
    'Repeat after me: one two three four five six seven eight nine ten.',
    'Write this text again, word for word: Our shop opens at nine in the morning and closes at six in the evening.',
    'Say the same thing in capital letters: please do not feed the birds in the park.',
  ],
};

export const PROMPTS: readonly Prompt[] = PROMPT_KINDS.flatMap((kind) => TEXTS[kind].map((text) => ({ kind, text })));
