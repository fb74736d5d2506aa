import { describe, expect, test } from 'vitest';
import { createChatRequestParser } from '../../../src/server/schemas/chat-request.ts';
import { createCompletionRequestParser } from '../../../src/server/schemas/completion-request.ts';
import { DEFAULT_SERVER_CONFIG } from '../../../src/server/server-config.ts';

const { limits } = DEFAULT_SERVER_CONFIG;
const parseCompletion = createCompletionRequestParser(limits);
const parseChat = createChatRequestParser(limits);
const completion = (fields: object) => parseCompletion({ prompt: 'x', ...fields });
const chat = (fields: object) => parseChat({ messages: [{ role: 'user', content: 'x' }], ...fields });
const refusal = (param: string | undefined, code: string) =>
  expect.objectContaining({
    code: 'invalid_request',
    message: expect.stringMatching(/^Expected .+, got .+\. ?\w/s),
    details: expect.objectContaining(param === undefined ? { code } : { param, code }),
  });

describe('the fields of both routes', () => {
  test('have the documented defaults', () => {
    const defaults = {
      model: null,
      temperature: undefined,
      topP: undefined,
      topK: undefined,
      minP: undefined,
      seed: null,
      stopStrings: [],
      stopTokenIds: [],
      ignoreEos: false,
      includeStopString: false,
      skipSpecialTokens: true,
      n: 1,
      stream: false,
      includeUsage: false,
      continuousUsage: false,
      requestId: null,
      drafter: null,
      draftTokens: null,
      priority: 0,
      cacheSalt: null,
      addSpecialTokens: null,
      truncatePromptTokens: null,
      rules: {
        allowedTokenIds: null,
        logitBias: new Map(),
        minTokens: 0,
        badWords: [],
        repetitionPenalty: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
      },
      structure: null,
      details: {
        logprobs: null,
        promptLogprobs: null,
        tokenIds: false,
        tokensAsIds: false,
        trace: false,
        specMetrics: null,
        metaInfo: false,
        specTokensDetails: false,
        timings: false,
      },
    };
    expect(completion({}).params).toEqual({ ...defaults, maxTokens: 16 });
    expect(chat({}).params).toEqual({ ...defaults, maxTokens: null });
  });

  test('are handed on', () => {
    const { params } = completion({
      model: 'm',
      max_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.1,
      seed: -5,
      stop: 'end',
      stop_token_ids: [1, 2],
      ignore_eos: true,
      include_stop_str_in_output: true,
      skip_special_tokens: false,
      n: 2,
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
      user: 'someone',
      request_id: 'r-1',
      speculative: false,
      draft_tokens: 3,
      priority: -2,
      cache_salt: 's',
      presence_penalty: -2,
      frequency_penalty: 2,
      repetition_penalty: 1.2,
      logit_bias: { 5: -100, 0: 1.5 },
      min_tokens: 7,
      bad_words: ['no', ' never'],
      allowed_token_ids: [1, 2, 3],
      prompt_logprobs: null,
      logprobs: 0,
      truncate_prompt_tokens: -1,
      add_special_tokens: false,
      return_token_ids: true,
      return_tokens_as_token_ids: true,
      structured_outputs: { regex: 'a+' },
      return_meta_info: true,
      return_spec_tokens_details: true,
      timings_per_token: true,
      trace: true,
      spec_decode_metrics: 'detailed',
    });
    expect(params).toEqual({
      model: 'm',
      maxTokens: 7,
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      minP: 0.1,
      seed: -5,
      stopStrings: ['end'],
      stopTokenIds: [1, 2],
      ignoreEos: true,
      includeStopString: true,
      skipSpecialTokens: false,
      n: 2,
      stream: true,
      includeUsage: true,
      continuousUsage: true,
      requestId: 'r-1',
      drafter: 'none',
      draftTokens: 3,
      priority: -2,
      cacheSalt: 's',
      addSpecialTokens: false,
      truncatePromptTokens: -1,
      rules: {
        allowedTokenIds: [1, 2, 3],
        logitBias: new Map([
          [5, -100],
          [0, 1.5],
        ]),
        minTokens: 7,
        badWords: ['no', ' never'],
        repetitionPenalty: 1.2,
        frequencyPenalty: 2,
        presencePenalty: -2,
      },
      structure: { structure: { kind: 'regex', pattern: 'a+' }, param: 'structured_outputs.regex' },
      details: {
        logprobs: 0,
        promptLogprobs: null,
        tokenIds: true,
        tokensAsIds: true,
        trace: true,
        specMetrics: 'detailed',
        metaInfo: true,
        specTokensDetails: true,
        timings: true,
      },
    });
  });

  test('may all be null', () => {
    const names = [
      'model',
      'max_tokens',
      'temperature',
      'top_p',
      'top_k',
      'min_p',
      'seed',
      'stop',
      'stop_token_ids',
      'n',
      'stream',
    ];
    const nulls = Object.fromEntries(
      [...names, 'stream_options', 'user', 'speculative', 'draft_tokens', 'priority', 'cache_salt', 'trace'].map((name) => [
        name,
        null,
      ]),
    );
    expect(completion(nulls)).toEqual(completion({}));
  });

  test.each([-1, 0])('switch top-k off with %i', (topK) => {
    expect(completion({ top_k: topK }).params.topK).toBe(0);
  });

  test('draft_tokens 0 is plain decoding', () => {
    expect(completion({ draft_tokens: 0 }).params.drafter).toBe('none');
  });

  test.each<readonly [string, unknown]>([
    ['temperature', -0.1],
    ['temperature', 2.1],
    ['temperature', '1'],
    ['top_p', 0],
    ['top_p', 1.01],
    ['top_k', -2],
    ['top_k', 1.5],
    ['min_p', 1.1],
    ['seed', 0.5],
    ['seed', 2 ** 53],
    ['stop', ''],
    ['stop', Array.from({ length: 17 }, () => 'x')],
    ['stop', 'x'.repeat(1025)],
    ['stop_token_ids', [0.5].map(String)],
    ['max_tokens', 0],
    ['max_tokens', 1.5],
    ['n', 0],
    ['n', 129],
    ['stream', 'yes'],
    ['user', 5],
    ['request_id', 'a b'],
    ['speculative', 1],
    ['draft_tokens', -1],
    ['priority', 0.5],
    ['cache_salt', ''],
    ['spec_decode_metrics', 'all'],
    ['model', 5],
    ['presence_penalty', 2.1],
    ['presence_penalty', '0'],
    ['frequency_penalty', -2.1],
    ['repetition_penalty', 0],
    ['repetition_penalty', 101],
    ['logit_bias', []],
    ['logit_bias', 5],
    ['logit_bias', Object.fromEntries(Array.from({ length: 1025 }, (_, id) => [id, 1]))],
    ['min_tokens', -1],
    ['min_tokens', 17],
    ['bad_words', 'no'],
    ['bad_words', Array.from({ length: 257 }, () => 'x')],
    ['bad_words', Array.from({ length: 17 }, () => 'x'.repeat(1000))],
    ['allowed_token_ids', []],
    ['allowed_token_ids', Array.from({ length: 16_385 }, () => 1)],
    ['prompt_logprobs', 21],
    ['prompt_logprobs', -1],
    ['logprobs', 21],
    ['logprobs', true],
    ['truncate_prompt_tokens', 0],
    ['truncate_prompt_tokens', -2],
    ['return_token_ids', 1],
    ['echo', 1],
    ['response_format', 'json'],
    ['response_format', { type: 'yaml' }],
    ['structured_outputs', {}],
    ['structured_outputs', { regex: 'a', choice: ['a'] }],
    ['structured_outputs', 'json'],
  ])('refuse %s: %j by name', (field, value) => {
    const param = field === 'stop_token_ids' ? 'stop_token_ids[0]' : field;
    expect(() => completion({ [field]: value })).toThrow(refusal(param, 'invalid_value'));
  });

  test.each<readonly [string, string, unknown]>([
    ['logit_bias', 'logit_bias.5', { 5: 101 }],
    ['logit_bias', 'logit_bias.x', { x: 1 }],
    ['bad_words', 'bad_words[1]', ['a', ' ']],
    ['allowed_token_ids', 'allowed_token_ids[1]', [1, -1]],
    ['structured_outputs', 'structured_outputs.regex', { regex: '' }],
    ['structured_outputs', 'structured_outputs.regex', { regex: 'x'.repeat(65_537) }],
    ['structured_outputs', 'structured_outputs.choice', { choice: [] }],
    ['structured_outputs', 'structured_outputs.choice', { choice: Array.from({ length: 65 }, () => 'x'.repeat(1024)) }],
    ['structured_outputs', 'structured_outputs.json', { json: { title: 'x'.repeat(65_536) } }],
    ['structured_outputs', 'structured_outputs.json', { json: '{' }],
    ['structured_outputs', 'structured_outputs.json_object', { json_object: false }],
    [
      'response_format',
      'response_format.json_schema.schema',
      { type: 'json_schema', json_schema: { name: 'x', schema: { title: 'x'.repeat(65_536) } } },
    ],
  ])('refuse a part of %s by name: %s', (field, param, value) => {
    expect(() => completion({ [field]: value })).toThrow(refusal(param, 'invalid_value'));
  });

  test.each([
    [{ logit_bias: { x: 1 } }, /^Expected logit_bias to be an object of .*, got 1 as logit_bias\.x\. Correct it\.$/],
    [{ bad_words: ['a', ' '] }, /^Expected bad_words to be a list of .*, got " " as bad_words\[1\]\. Correct it\.$/],
    [{ stop_token_ids: 7 }, /^Expected stop_token_ids to be a list of .*, got 7\. Correct it\.$/],
  ])('tell what is expected of the list or object that a part is in: %j', (fields, message) => {
    expect(() => completion(fields)).toThrow(message);
  });

  const schema = { type: 'object' };
  test.each<readonly [object, unknown]>([
    [{ response_format: { type: 'text' } }, null],
    [{ response_format: { type: 'json_object' } }, { kind: 'json-object' }],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } } },
      { kind: 'json-schema', schema: '{"type":"object"}' },
    ],
    [
      { response_format: { type: 'structural_tag', structures: [], triggers: [] } },
      { kind: 'structural-tag', tag: '{"type":"structural_tag","structures":[],"triggers":[]}' },
    ],
    [{ structured_outputs: { json: schema } }, { kind: 'json-schema', schema: '{"type":"object"}' }],
    [{ structured_outputs: { json: '{ }' } }, { kind: 'json-schema', schema: '{ }' }],
    [{ structured_outputs: { regex: 'a|b' } }, { kind: 'regex', pattern: 'a|b' }],
    [{ structured_outputs: { choice: ['a', 'b'] } }, { kind: 'choice', choices: ['a', 'b'] }],
    [{ structured_outputs: { grammar: 'root ::= "a"' } }, { kind: 'grammar', ebnf: 'root ::= "a"' }],
    [{ structured_outputs: { json_object: true } }, { kind: 'json-object' }],
    [{ structured_outputs: { structural_tag: { a: 1 } } }, { kind: 'structural-tag', tag: '{"a":1}' }],
  ])('ask for a structure: %j', (fields, structure) => {
    for (const parse of [completion, chat]) expect(parse(fields).params.structure?.structure ?? null).toEqual(structure);
  });

  test('ask for one structure at most', () => {
    const both = { response_format: { type: 'json_object' }, structured_outputs: { json_object: true } };
    for (const parse of [completion, chat])
      expect(() => parse(both)).toThrow(refusal('structured_outputs.json_object', 'invalid_value'));
  });

  test('ask for usage where running usage is wanted', () => {
    const usage = (options: object) => completion({ stream: true, stream_options: options }).params;
    expect(usage({ continuous_usage_stats: true })).toMatchObject({ includeUsage: true, continuousUsage: true });
    expect(usage({ include_usage: true })).toMatchObject({ includeUsage: true, continuousUsage: false });
    expect(usage({ continuous_usage_stats: false })).toMatchObject({ includeUsage: false, continuousUsage: false });
  });

  test('do not stream what is said of the prompt', () => {
    for (const parse of [completion, chat])
      expect(() => parse({ stream: true, prompt_logprobs: 1 })).toThrow(refusal('prompt_logprobs', 'invalid_value'));
  });

  test('refuse an unknown field by name, at any depth', () => {
    expect(() => completion({ temprature: 1 })).toThrow(refusal('temprature', 'unknown_parameter'));
    expect(() => completion({ stream_options: { usage: true } })).toThrow(refusal('stream_options.usage', 'unknown_parameter'));
    expect(() => chat({ tools: [{ typ: 'function' }] })).toThrow(refusal('tools[0].typ', 'unknown_parameter'));
    expect(() => chat({ prompt: 'x' })).toThrow(refusal('prompt', 'unknown_parameter'));
  });

  test.each([5, null, [], 'text', undefined])('refuse the body %j', (body) => {
    expect(() => parseCompletion(body)).toThrow(refusal(undefined, 'invalid_json'));
  });
});

describe('fields that are accepted while they ask for nothing', () => {
  test.each<readonly [string, readonly unknown[], readonly unknown[]]>([
    ['store', [false], [true]],
    ['service_tier', ['auto', 'default'], ['flex']],
    ['metadata', [{ a: 'b' }], ['text']],
    ['prompt_cache_retention', ['24h'], [24]],
    ['thinking_token_budget', [], [0, 100]],
    ['repetition_detection', [], [{ max_pattern_size: 3 }]],
  ])('%s, on both routes', (field, neutral, asking) => {
    for (const parse of [completion, chat]) {
      for (const value of [null, ...neutral]) expect(() => parse({ [field]: value })).not.toThrow();
      for (const value of asking) expect(() => parse({ [field]: value })).toThrow(refusal(field, 'unsupported_parameter'));
    }
  });

  test.each<readonly [string, string, unknown, unknown]>([
    ['stream_options', 'include_obfuscation', false, true],
    ['structured_outputs', 'disable_any_whitespace', false, true],
    ['structured_outputs', 'disable_additional_properties', false, true],
    ['structured_outputs', 'whitespace_pattern', null, '\\s*'],
  ])('within %s: %s', (field, name, neutral, asking) => {
    const given = field === 'structured_outputs' ? { regex: 'a' } : {};
    for (const parse of [completion, chat]) {
      const { params } = parse({ stream: true, [field]: { ...given, [name]: neutral } });
      expect(params.structure).toEqual(parse({ [field]: given }).params.structure);
      expect(() => parse({ stream: true, [field]: { ...given, [name]: asking } })).toThrow(
        refusal(`${field}.${name}`, 'unsupported_parameter'),
      );
    }
  });

  test.each<readonly [string, readonly unknown[], readonly unknown[]]>([
    ['best_of', [1], [2]],
    ['suffix', [''], ['end']],
  ])('%s, on completions', (field, neutral, asking) => {
    for (const value of [null, ...neutral]) expect(() => completion({ [field]: value })).not.toThrow();
    for (const value of asking) expect(() => completion({ [field]: value })).toThrow(refusal(field, 'unsupported_parameter'));
  });

  test.each<readonly [string, readonly unknown[], readonly unknown[]]>([
    ['modalities', [['text']], [['text', 'audio']]],
    ['functions', [[]], [[{ name: 'f' }]]],
    ['chat_template', [], ['{{ messages }}']],
  ])('%s, on chat', (field, neutral, asking) => {
    for (const value of [null, ...neutral]) expect(() => chat({ [field]: value })).not.toThrow();
    for (const value of asking) expect(() => chat({ [field]: value })).toThrow(refusal(field, 'unsupported_parameter'));
  });
});

describe('logprobs', () => {
  test('are a number on completions', () => {
    expect(completion({ logprobs: 5 }).params.details.logprobs).toBe(5);
    expect(completion({ logprobs: 0 }).params.details.logprobs).toBe(0);
  });

  test('are a switch and a number in chats', () => {
    expect(chat({ logprobs: true }).params.details.logprobs).toBe(0);
    expect(chat({ logprobs: true, top_logprobs: 20 }).params.details.logprobs).toBe(20);
    expect(chat({ logprobs: false, top_logprobs: 0 }).params.details.logprobs).toBeNull();
    for (const fields of [{ top_logprobs: 1 }, { logprobs: false, top_logprobs: 1 }, { logprobs: true, top_logprobs: 21 }])
      expect(() => chat(fields)).toThrow(refusal('top_logprobs', 'invalid_value'));
  });
});

describe('an echo', () => {
  test('may come without an answer', () => {
    expect(completion({ echo: true, max_tokens: 0 })).toMatchObject({ echo: true, params: { maxTokens: 0 } });
  });
});

describe('the prompt', () => {
  test.each<readonly [string, unknown, unknown]>([
    ['a string', 'x', ['x']],
    ['strings', ['x', 'y'], ['x', 'y']],
    ['token ids', [1, 2], [[1, 2]]],
    ['lists of token ids', [[1], [2, 3]], [[1], [2, 3]]],
  ])('may be %s', (_, prompt, prompts) => {
    expect(completion({ prompt }).prompts).toEqual(prompts);
  });

  test.each([['', [], [''], [[]], [1, 'x'], ['x', 1], [[1], ['x']], [-1], [1.5], [[1.5]], 5, { a: 1 }]].flat())(
    'may not be %j',
    (prompt) => {
      expect(() => completion({ prompt })).toThrow(refusal('prompt', 'invalid_value'));
    },
  );

  test('must be there', () => {
    expect(() => parseCompletion({})).toThrow(refusal('prompt', 'missing_parameter'));
    expect(() => parseChat({})).toThrow(refusal('messages', 'missing_parameter'));
  });

  test('times n is capped', () => {
    expect(() => completion({ prompt: Array.from({ length: 64 }, () => 'x'), n: 2 })).not.toThrow();
    expect(() => completion({ prompt: Array.from({ length: 65 }, () => 'x'), n: 2 })).toThrow(refusal('n', 'invalid_value'));
    expect(() => completion({ prompt: Array.from({ length: 129 }, () => 'x') })).toThrow(refusal('prompt', 'invalid_value'));
  });
});

describe('the length of a chat answer', () => {
  test('goes by either of two names', () => {
    expect(chat({ max_tokens: 5 }).params.maxTokens).toBe(5);
    expect(chat({ max_completion_tokens: 6 }).params.maxTokens).toBe(6);
    expect(chat({ max_completion_tokens: 6, max_tokens: 6 }).params.maxTokens).toBe(6);
  });

  test('may not have two values', () => {
    expect(() => chat({ max_completion_tokens: 6, max_tokens: 5 })).toThrow(refusal('max_tokens', 'invalid_value'));
  });
});
