import { describe, expect, it } from 'vitest';
import { AnswerText } from '../../../src/engine/answer-text.ts';
import type { GenerateRequest } from '../../../src/engine/engine.ts';
import { EOS, encode, request, TOKENIZER } from './engine-fixture.ts';

function answerText(options: Partial<GenerateRequest> = {}): AnswerText {
  return new AnswerText(request('Q', options), TOKENIZER, [EOS]);
}

/** Pushes the text's tokens; the ending, or null. */
function push(answer: AnswerText, text: string) {
  let ending = null;
  for (const token of encode(text)) ending ??= answer.push(token);
  return ending;
}

describe('the text of an answer', () => {
  it('is taken once', () => {
    const answer = answerText();
    push(answer, 'hello');
    expect([answer.take(), answer.take()]).toEqual(['hello', '']);
  });

  it('holds back what may become a stop string, until that is decided', () => {
    const answer = answerText({ stopStrings: ['<stop>'] });
    push(answer, 'a<st');
    expect(answer.take()).toBe('a');
    push(answer, 'ack');
    expect(answer.take()).toBe('<stack');
  });

  it('is complete in the end when the stop string did not come', () => {
    const answer = answerText({ stopStrings: ['<stop>'] });
    push(answer, 'a<st');
    expect(answer.finish()).toBe('a<st');
  });

  it('is cut off before a stop string', () => {
    const answer = answerText({ stopStrings: ['<stop>'] });
    const ending = push(answer, 'a<stop>');
    expect(ending).toEqual({ reason: 'stop', stopReason: '<stop>' });
    push(answer, 'b<st');
    expect(answer.finish()).toBe('a');
  });

  it('gives up on an unfinished character in the end only', () => {
    const answer = answerText();
    push(answer, ' ');
    answer.push(0xf0);
    expect(answer.take()).toBe(' ');
    expect(answer.finish()).toBe('\uFFFD');
  });

  it('has held-back text in front of a stop token', () => {
    const answer = answerText({ stopStrings: ['abc'], stopTokenIds: [encode('x')[0]!] });
    const ending = push(answer, 'abx');
    expect(ending).toEqual({ reason: 'stop', stopReason: encode('x')[0] });
    expect(answer.finish()).toBe('ab');
  });

  it('leaves the end-of-sequence token without a reason, unless it counts as an ordinary one', () => {
    expect(answerText().push(EOS)).toEqual({ reason: 'stop', stopReason: null });
    expect(answerText({ ignoreEos: true }).push(EOS)).toBeNull();
    expect(answerText({ ignoreEos: true, stopTokenIds: [EOS] }).push(EOS)).toEqual({ reason: 'stop', stopReason: EOS });
  });

  it('shows special tokens when told to', () => {
    const answer = answerText({ skipSpecialTokens: false, includeStopString: true });
    push(answer, 'a');
    answer.push(EOS);
    expect(answer.finish()).toBe('a<|end|>');
  });

  it.each([
    [[], 'a'],
    [[EOS], 'a<|end|>'],
  ])('shows those special tokens that it is asked for: %j', (shownTokens, expected) => {
    const answer = answerText({ ignoreEos: true, shownTokens });
    push(answer, 'a');
    answer.push(EOS);
    expect(answer.finish()).toBe(expected);
  });
});
