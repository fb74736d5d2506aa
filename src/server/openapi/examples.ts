/** A body for each operation that takes one, as `/docs` offers it to be tried: without one a page makes up a value for every field. */

const CHAT = { messages: [{ role: 'user', content: 'What is gravity?' }], max_tokens: 64 };
const COMPLETION = { prompt: 'Gravity is', max_tokens: 64 };

/** By path. */
export const EXAMPLES: Readonly<Record<string, object>> = {
  '/v1/completions': COMPLETION,
  '/v1/chat/completions': CHAT,
  '/v1/completions/render': COMPLETION,
  '/v1/chat/completions/render': CHAT,
  '/tokenize': { prompt: 'Gravity is' },
  '/detokenize': { tokens: [1, 2, 3] },
  '/v1/drafters/{name}/load': { path: 'v5/step-2000' },
  '/v1/drafters/{name}/validate': { limit: 16 },
  '/v1/drafters/{name}/diagnose': { limit: 40 },
  '/v1/drafters/{name}/record': { limit: 16, out: 'recording' },
  '/v1/drafters/compare': { drafters: ['ngram', 'dflash'], limit: 16 },
  '/v1/drafters/export-hard': { validation: 'v5' },
  '/v1/drafters/watch': { watch: ['v5'], limit: 16 },
};
