/** What is asked, what the engine does, and what a stream must then say; read by the SSE and the WebSocket tests alike. */
import { AppError } from '../../../src/core/app-error.ts';
import type { EngineInfo } from '../../../src/engine/engine.ts';
import type { FakeScript } from '../../support/fake-engine.ts';
import type { ToldCall } from '../../support/stream-facts.ts';

export interface StreamVector {
  readonly name: string;
  readonly path: '/v1/completions' | '/v1/chat/completions';
  /** The body without `stream` and `request_id`, which the transports add. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly script: FakeScript;
  readonly info?: Partial<EngineInfo>;
  readonly expected: {
    /** Text pieces of each choice, in order; the role chunk's empty text is left out. */
    readonly pieces: readonly (readonly string[])[];
    /** Default: none. */
    readonly reasoning?: readonly string[];
    readonly calls?: readonly ToldCall[];
    readonly finishReasons: readonly string[];
    readonly stopReason?: string | number | null;
    /** `code` of the error that ends the stream. */
    readonly errorCode?: string;
    /** Where the statistics ride; undefined when the stream fails. */
    readonly metricsIn?: 'finish chunk' | 'usage chunk';
    /** Some fields of `metrics.speculative_decoding`. */
    readonly speculation?: Readonly<Record<string, unknown>> | null;
  };
}

const user = (content: string) => [{ role: 'user', content }];
const greedy = { temperature: 0 } as const;
const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];

export const STREAM_VECTORS: readonly StreamVector[] = [
  {
    name: 'a chat answer whose statistics ride in the usage chunk',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('hi'), stream_options: { include_usage: true } },
    script: { text: 'Hello there', accepts: [2, 4] },
    expected: {
      pieces: [['H', 'ell', 'o the', 're']],
      finishReasons: ['stop'],
      metricsIn: 'usage chunk',
      // Round 3 drafts 4 and would accept 2, and the answer ends behind them: 11 letters and the end token are 1 + 3 + 5 + 3.
      speculation: {
        num_spec_steps: 3,
        num_draft_tokens: 12,
        num_accepted_draft_tokens: 8,
        acceptance_histogram: [0, 0, 2, 0, 1],
        mean_acceptance_length: 1 + 8 / 3,
        no_draft_rounds: {},
        drafter: 'oracle',
      },
    },
  },
  {
    name: 'a chat answer without usage, whose statistics ride in the finish chunk',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('hi') },
    script: { text: 'Yes', accepts: [4] },
    expected: {
      pieces: [['Y', 'es']],
      finishReasons: ['stop'],
      metricsIn: 'finish chunk',
      // The end token is the third of the draft: the fourth was never compared.
      speculation: { num_draft_tokens: 4, num_accepted_draft_tokens: 3, acceptance_histogram: [0, 0, 0, 1, 0] },
    },
  },
  {
    name: 'a completion that a stop string ends inside an accepted block',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'count', max_tokens: 64, stop: ['3,'] },
    script: { text: '1,2,3,4,5,6', accepts: [4] },
    expected: {
      pieces: [['1', ',2,']],
      finishReasons: ['stop'],
      stopReason: '3,',
      metricsIn: 'finish chunk',
      speculation: { num_spec_steps: 1, num_draft_tokens: 4, num_accepted_draft_tokens: 4 },
    },
  },
  {
    name: 'a stop string that is kept in the text',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'count', stop: '3,', include_stop_str_in_output: true },
    script: { text: '1,2,3,4,5,6', accepts: [0] },
    expected: { pieces: [['1', ',', '2', ',', '3,']], finishReasons: ['stop'], stopReason: '3,', metricsIn: 'finish chunk' },
  },
  {
    name: 'a stop token of the request',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', stop_token_ids: ['!'.charCodeAt(0)] },
    script: { text: 'ab!cd', accepts: [1] },
    expected: { pieces: [['a', 'b']], finishReasons: ['stop'], stopReason: 33, metricsIn: 'finish chunk' },
  },
  {
    name: 'characters of several bytes that rounds cut in two',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('smile'), stream_options: { include_usage: true } },
    script: { text: 'é😀!', accepts: [0] },
    expected: { pieces: [['é', '😀', '!']], finishReasons: ['stop'], metricsIn: 'usage chunk' },
  },
  {
    name: 'an answer that max_tokens ends',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 6 },
    script: { text: 'abcdefghij', accepts: [4] },
    expected: {
      pieces: [['a', 'bcdef']],
      finishReasons: ['length'],
      metricsIn: 'finish chunk',
      speculation: { num_spec_steps: 1, num_draft_tokens: 4, num_accepted_draft_tokens: 4, no_draft_rounds: {} },
    },
  },
  {
    name: 'a last token that needs no draft',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 2 },
    script: { text: 'abcdefghij' },
    expected: {
      pieces: [['a', 'b']],
      finishReasons: ['length'],
      metricsIn: 'finish chunk',
      speculation: {
        num_spec_steps: 0,
        num_spec_tokens: 4,
        mean_acceptance_length: 1,
        draft_acceptance_rate: 0,
        no_draft_rounds: { 'near-max-tokens': 1 },
      },
    },
  },
  {
    name: 'plain decoding on request',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 3, speculative: false },
    script: { text: 'abc' },
    expected: {
      pieces: [['a', 'b', 'c']],
      finishReasons: ['length'],
      metricsIn: 'finish chunk',
      speculation: { num_spec_steps: 0, num_draft_tokens: 0, no_draft_rounds: { 'disabled-by-request': 2 } },
    },
  },
  {
    name: 'plain decoding on a server without a drafter',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 3 },
    script: { text: 'abc' },
    info: { drafters: [] },
    expected: {
      pieces: [['a', 'b', 'c']],
      finishReasons: ['length'],
      metricsIn: 'finish chunk',
      speculation: {
        drafter: 'none',
        num_spec_tokens: 0,
        mean_acceptance_length: null,
        acceptance_histogram: [0],
        no_draft_rounds: { 'no-drafter': 2 },
      },
    },
  },
  {
    name: 'a shorter draft on request',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 5, draft_tokens: 1, spec_decode_metrics: 'detailed' },
    script: { text: 'abcdefgh', accepts: [1] },
    expected: {
      pieces: [['a', 'bc', 'de']],
      finishReasons: ['length'],
      metricsIn: 'finish chunk',
      speculation: { num_spec_tokens: 1, per_step_drafted: [1, 1], per_step_accepted: [1, 1] },
    },
  },
  {
    name: 'a drafter that fails on the way',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 7 },
    script: { text: 'abcdefgh', accepts: [2], drafterFailsAt: 1 },
    expected: {
      pieces: [['a', 'bcd', 'e', 'f', 'g']],
      finishReasons: ['length'],
      metricsIn: 'finish chunk',
      speculation: {
        num_spec_steps: 1,
        no_draft_rounds: { 'drafter-failed': 2, 'near-max-tokens': 1 },
        drafter_error: 'the scripted drafter failed',
      },
    },
  },
  {
    name: 'statistics that are switched off',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 2, spec_decode_metrics: 'none' },
    script: { text: 'abc' },
    expected: { pieces: [['a', 'b']], finishReasons: ['length'], metricsIn: 'finish chunk' },
  },
  {
    name: 'two answers to each of two prompts of token ids',
    path: '/v1/completions',
    body: { ...greedy, prompt: [[1, 2], [3]], n: 2, max_tokens: 2, stream_options: { include_usage: true } },
    script: { text: 'abc' },
    expected: {
      pieces: [
        ['a', 'b'],
        ['a', 'b'],
        ['a', 'b'],
        ['a', 'b'],
      ],
      finishReasons: ['length', 'length', 'length', 'length'],
      metricsIn: 'usage chunk',
      speculation: null,
    },
  },
  {
    name: 'counts in every chunk',
    path: '/v1/completions',
    body: {
      ...greedy,
      prompt: 'xy',
      max_tokens: 4,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    },
    script: { text: 'abcd', accepts: [1] },
    expected: { pieces: [['a', 'bc', 'd']], finishReasons: ['length'], metricsIn: 'usage chunk' },
  },
  {
    name: 'an end token that is ignored',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', max_tokens: 5, ignore_eos: true, skip_special_tokens: false },
    script: { text: 'ab', accepts: [4] },
    expected: { pieces: [['a', 'b<|end|>ab']], finishReasons: ['length'], metricsIn: 'finish chunk' },
  },
  {
    name: 'logprobs of tokens whose text a stop string holds back',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'x', logprobs: 2, stop: ['cdX'], return_token_ids: true, skip_special_tokens: false },
    script: { text: 'abcdeé', accepts: [1, 0] },
    expected: { pieces: [['a', 'b', 'cde', 'é']], finishReasons: ['stop'], metricsIn: 'finish chunk' },
  },
  {
    name: 'an echo with logprobs of the prompt',
    path: '/v1/completions',
    body: { ...greedy, prompt: 'é!', echo: true, logprobs: 1, n: 2, max_tokens: 4, return_tokens_as_token_ids: true },
    script: { text: 'abcdef', accepts: [2] },
    expected: {
      pieces: [
        ['é!a', 'bcd'],
        ['é!a', 'bcd'],
      ],
      finishReasons: ['length', 'length'],
      metricsIn: 'finish chunk',
    },
  },
  {
    name: 'an echo without an answer',
    path: '/v1/completions',
    body: { ...greedy, prompt: [104, 105], echo: true, logprobs: 0, max_tokens: 0, stream_options: { include_usage: true } },
    script: { text: 'abc' },
    expected: { pieces: [['hi']], finishReasons: ['length'], metricsIn: 'usage chunk' },
  },
  {
    name: 'an answer that reasons first',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('hi'), stream_options: { include_usage: true, continuous_usage_stats: true } },
    script: { text: '<think>hm, no</think>Yes', accepts: [2, 4] },
    expected: {
      pieces: [['Y', 'es']],
      reasoning: ['hm,', ' no'],
      finishReasons: ['stop'],
      metricsIn: 'usage chunk',
    },
  },
  {
    name: 'text and two calls of tools',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('hi'), tools },
    script: {
      text: 'Ok.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
      accepts: [4],
    },
    expected: {
      pieces: [['O', 'k.\n']],
      calls: [
        { name: 'f', arguments: '{"a": 1}' },
        { name: 'f', arguments: '{}' },
      ],
      finishReasons: ['tool_calls'],
      metricsIn: 'finish chunk',
    },
  },
  {
    name: 'a block that turns out to be no call',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('hi'), tools },
    script: { text: '<tool_call>f(1)', accepts: [4] },
    expected: { pieces: [['<tool_call>', 'f(1)']], finishReasons: ['stop'], metricsIn: 'finish chunk' },
  },
  {
    name: 'an engine that fails behind the first tokens',
    path: '/v1/chat/completions',
    body: { ...greedy, messages: user('hi'), stream_options: { include_usage: true } },
    script: {
      text: 'Hello there',
      accepts: [1],
      failsAt: { step: 2, error: new AppError('onnx_runtime', 'the scripted step failed at /some/path') },
    },
    expected: { pieces: [['H', 'el']], finishReasons: [], errorCode: 'internal_error' },
  },
];
