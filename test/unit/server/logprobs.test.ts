import { describe, expect, test } from 'vitest';
import type { TokenLogprobs } from '../../../src/core/token-logprobs.ts';
import { chatLogprobs } from '../../../src/server/logprobs/chat-logprobs.ts';
import { completionLogprobs } from '../../../src/server/logprobs/completion-logprobs.ts';
import { promptLogprobsField } from '../../../src/server/logprobs/prompt-logprobs.ts';
import { tokenSpeller } from '../../../src/server/logprobs/token-speller.ts';

/** Tokens 2 and 3 have equal texts, 4 and 5 are the halves of é, and 6 is a name that objects know. */
const TEXTS = ['a', 'b', '�', '�', '�', '�', '__proto__'];
const BYTES = [[97], [98], [0xff], [0xfe], [0xc3], [0xa9], [...Buffer.from('__proto__')]];
const engine = {
  tokenText: (token: number) => TEXTS[token]!,
  tokenBytes: (token: number) => Uint8Array.from(BYTES[token]!),
};
const speller = tokenSpeller(engine, false);
const told = (token: number, logprob: number, top: TokenLogprobs['top'] = []): TokenLogprobs => ({
  token,
  logprob,
  rank: 1,
  top,
});

const ofCompletion = (told: TokenLogprobs, asIds = false) =>
  completionLogprobs({ tokens: [told.token], logprobs: [told], offsets: [0] }, tokenSpeller(engine, asIds));

describe('logprobs of a completion', () => {
  test('tell the more probable of two tokens with equal texts, but always the chosen one', () => {
    const top = [
      { token: 3, logprob: -0.1 },
      { token: 2, logprob: -3 },
    ];
    expect(ofCompletion(told(0, -5, top)).top_logprobs).toEqual([{ a: -5, '�': -0.1 }]);
    expect(ofCompletion(told(2, -3, top)).top_logprobs).toEqual([{ '�': -3 }]);
    expect(ofCompletion(told(2, -3, top), true).top_logprobs).toEqual([{ 'token_id:2': -3, 'token_id:3': -0.1 }]);
  });

  test('have a number for what has no probability', () => {
    const { token_logprobs: own, top_logprobs: top } = ofCompletion(told(0, -Infinity, [{ token: 1, logprob: -Infinity }]));
    expect([own, top]).toEqual([[-9999], [{ a: -9999, b: -9999 }]]);
  });

  test('tell any text as a field of its own', () => {
    const { top_logprobs: top } = ofCompletion(told(6, -1));
    expect(JSON.stringify(top)).toBe('[{"__proto__":-1}]');
  });
});

test('logprobs of a chat have the bytes of each token', () => {
  expect(chatLogprobs([told(4, -1, [{ token: 0, logprob: -0.5 }])], speller)).toEqual({
    content: [{ token: '�', logprob: -1, bytes: [0xc3], top_logprobs: [{ token: 'a', logprob: -0.5, bytes: [97] }] }],
    refusal: null,
  });
});

test('logprobs of a prompt go by token id, with the true rank of a tie', () => {
  const tie: TokenLogprobs = {
    token: 1,
    logprob: -0.7,
    rank: 1,
    top: [
      { token: 0, logprob: -0.7 },
      { token: 1, logprob: -0.7 },
    ],
  };
  expect(promptLogprobsField([tie], speller)).toEqual([
    null,
    {
      0: { logprob: -0.7, rank: 1, decoded_token: 'a' },
      1: { logprob: -0.7, rank: 1, decoded_token: 'b' },
    },
  ]);
});
