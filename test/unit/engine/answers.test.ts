import { describe, expect, it } from 'vitest';
import { OracleDrafter } from '../../support/oracle-drafter.ts';
import { plainDecode } from '../../support/plain-decode.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { ThrowingDrafter } from '../../support/throwing-drafter.ts';
import { answerOf, answersTexts, EOS, encode, NEVER, openEngine, oracle, request, TOKENIZER, VOCAB } from './engine-fixture.ts';

describe('requests that share the steps', () => {
  const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 4, memory: 5 });
  const requests = Array.from({ length: 12 }, (_, i) =>
    request(
      Array.from({ length: 1 + ((i * 7) % 23) }, (_, position) => (i * 31 + position * 5) % VOCAB),
      {
        maxTokens: 3 + i * 2,
        ignoreEos: true,
        drafter: i % 4 === 3 ? 'none' : null,
        draftTokens: i % 3 === 0 ? 2 : null,
        sampling: { temperature: i % 2 === 0 ? 0 : 0.9, topP: 0.9, topK: 20, minP: 0, seed: BigInt(i) },
      },
    ),
  );

  it('get the tokens that each gets alone, and that plain decoding gives', async () => {
    const { engine, target } = openEngine({ nextLogits, maxSequences: 5, maxRows: 20 });
    const together = await Promise.all(requests.map((one) => answerOf(engine.generate(one, NEVER))));
    const steps = target.steps;
    const alone = openEngine({ nextLogits, maxSequences: 5, maxRows: 20 });
    for (const [i, one] of requests.entries()) {
      const { sampling, promptTokens } = one;
      const answer = await answerOf(alone.engine.generate(one, NEVER));
      expect(together[i]?.tokens).toEqual(answer.tokens);
      expect(together[i]?.text).toEqual(answer.text);
      expect(answer.tokens).toEqual(
        plainDecode(nextLogits, { prompt: promptTokens, sampling, maxTokens: one.maxTokens!, stopTokens: [] }),
      );
    }
    expect(steps).toBeLessThan(alone.target.steps / 2);
    expect(
      together.reduce((sum, { finish }) => sum + finish.speculation.rounds.reduce((s, { accepted }) => s + accepted, 0), 0),
    ).toBeGreaterThan(20);
  });
});

describe('an answer', () => {
  const nextLogits = answersTexts({
    'Say it: ': 'hello world<|end|>',
    'Stop: ': 'abc STOP def<|end|>',
    'Emoji: ': ' 😀 世<|end|>',
  });

  it('ends at the end-of-sequence token, wherever it is in a block, with nothing behind it', async () => {
    const expected = encode('hello world<|end|>');
    for (let draftTokens = 1; draftTokens <= 12; draftTokens++) {
      const { engine } = openEngine({ nextLogits, drafter: oracle(nextLogits, 12), draftTokens });
      const { tokens, text, finish } = await answerOf(engine.generate(request('Say it: '), NEVER));
      expect(tokens).toEqual(expected);
      expect(text).toBe('hello world');
      expect(finish).toMatchObject({ reason: 'stop', stopReason: null, completionTokens: expected.length });
    }
  });

  it('goes on behind it when told to', async () => {
    const { engine } = openEngine({ nextLogits });
    const asked = request('Say it: ', { ignoreEos: true, maxTokens: 12, skipSpecialTokens: false });
    const { text, finish, tokens } = await answerOf(engine.generate(asked, NEVER));
    expect(text).toMatch(/^hello world<\|end\|>\.+$/);
    expect([tokens.length, finish.reason]).toEqual([12, 'length']);
  });

  it.each([1, 2, 3, 4, 5, 6, 7])('of at most %i tokens has that many', async (maxTokens) => {
    const { engine } = openEngine({ nextLogits });
    const { tokens, finish } = await answerOf(engine.generate(request('Say it: ', { maxTokens }), NEVER));
    expect(tokens).toEqual(encode('hello world<|end|>').slice(0, maxTokens));
    expect(finish.reason).toBe(maxTokens < encode('hello world<|end|>').length ? 'length' : 'stop');
  });

  it('fills the context and no more', async () => {
    const { engine } = openEngine({ nextLogits: answersTexts({}), maxContext: 20 });
    const { tokens, finish } = await answerOf(engine.generate(request([1, 2, 3, 4, 5]), NEVER));
    expect([tokens.length, finish.reason]).toEqual([15, 'length']);
    expect(finish.speculation.noDraft['near-max-tokens']).toBeUndefined();
    const one = await answerOf(engine.generate(request(Array.from({ length: 17 }, () => 1)), NEVER));
    expect(one.tokens).toHaveLength(3);
    expect(
      await answerOf(
        engine.generate(
          request(
            Array.from({ length: 18 }, () => 1),
            { draftTokens: 1 },
          ),
          NEVER,
        ),
      ),
    ).toMatchObject({
      finish: { speculation: { noDraft: { 'context-limit': 1 } } },
    });
  });

  it('of more tokens than the context has room for ends at the context', async () => {
    const { engine } = openEngine({ nextLogits: answersTexts({}), maxContext: 20 });
    const prompt = Array.from({ length: 18 }, () => 1);
    const { tokens, finish } = await answerOf(engine.generate(request(prompt, { maxTokens: 5 }), NEVER));
    expect([tokens.length, finish.reason]).toEqual([2, 'length']);
    expect(finish.speculation.noDraft).toEqual({ 'context-limit': 1 });
    const exact = await answerOf(engine.generate(request(prompt, { maxTokens: 2 }), NEVER));
    expect(exact.finish.speculation.noDraft).toEqual({ 'near-max-tokens': 1 });
  });

  it.each([
    { wanted: null, longest: 3 },
    { wanted: 2, longest: 2 },
    { wanted: 99, longest: 3 },
  ])('has drafts of at most $longest when $wanted are wanted and the server makes 3', async ({ wanted, longest }) => {
    const { engine } = openEngine({ nextLogits: answersTexts({}), draftTokens: 3 });
    const asked = request('Go on', { maxTokens: 20, draftTokens: wanted });
    const { speculation } = (await answerOf(engine.generate(asked, NEVER))).finish;
    expect(speculation.maxDraftTokens).toBe(longest);
    expect(Math.max(...speculation.rounds.map(({ drafted }) => drafted))).toBe(longest);
  });

  it('is plain when drafts of no tokens are wanted', async () => {
    const { engine } = openEngine({ nextLogits: answersTexts({}) });
    const { finish } = await answerOf(engine.generate(request('Go on', { maxTokens: 4, draftTokens: 0 }), NEVER));
    expect(finish.speculation).toMatchObject({ drafter: 'none', noDraft: { 'disabled-by-request': 3 } });
  });

  it('ends at a stop token, which its text leaves out unless told otherwise', async () => {
    const stop = encode('w').at(-1)!;
    const [space] = encode(' w');
    const { engine } = openEngine({ nextLogits });
    const stopTokenIds = [stop, space!];
    const without = await answerOf(engine.generate(request('Say it: ', { stopTokenIds }), NEVER));
    expect(without).toMatchObject({ text: 'hello', finish: { reason: 'stop', stopReason: space } });
    const including = await answerOf(engine.generate(request('Say it: ', { stopTokenIds, includeStopString: true }), NEVER));
    expect(including.text).toBe('hello w');
  });

  it('ends at a stop string inside an accepted block, and none of it leaks', async () => {
    for (let draftTokens = 1; draftTokens <= 16; draftTokens++) {
      const { engine, recorder } = openEngine({ nextLogits, drafter: oracle(nextLogits, 16), draftTokens });
      const asked = request('Stop: ', { stopStrings: ['nothing', 'STOP'] });
      const { text, finish, tokens, pieces } = await answerOf(engine.generate(asked, NEVER));
      expect(text).toBe('abc ');
      for (const piece of pieces) expect(piece).not.toMatch(/[STOPdef]/);
      expect(finish).toMatchObject({ reason: 'stop', stopReason: 'STOP', completionTokens: tokens.length });
      expect(tokens).toEqual(encode('abc STOP'));
      expect(recorder.finishes).toHaveLength(1);
    }
  });

  it('keeps the stop string when told to, and nothing behind it', async () => {
    const { engine } = openEngine({ nextLogits });
    const asked = request('Stop: ', { stopStrings: ['TO'], includeStopString: true });
    expect(await answerOf(engine.generate(asked, NEVER))).toMatchObject({ text: 'abc STO', finish: { stopReason: 'TO' } });
  });

  it('has the text that was held back for a stop string that never came', async () => {
    const { engine } = openEngine({ nextLogits });
    const { text, finish } = await answerOf(engine.generate(request('Say it: ', { stopStrings: ['world!', 'd<'] }), NEVER));
    expect([text, finish.stopReason]).toEqual(['hello world', null]);
  });

  it('comes in whole characters, in as many events as there were rounds', async () => {
    const { engine } = openEngine({ nextLogits, drafter: null });
    const { pieces, text, tokens } = await answerOf(engine.generate(request('Emoji: '), NEVER));
    expect(text).toBe(' 😀 世');
    expect(pieces).toHaveLength(tokens.length);
    expect(pieces.filter((piece) => piece !== '')).toEqual([' 😀', ' ', '世']);
  });

  it('is the same text with any drafter and none', async () => {
    for (const prompt of ['Say it: ', 'Stop: ', 'Emoji: ']) {
      const plain = openEngine({ nextLogits, drafter: null });
      const expected = await answerOf(plain.engine.generate(request(prompt), NEVER));
      const next = nextToken(nextLogits, { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 0n });
      const { engine } = openEngine({ nextLogits, drafter: new OracleDrafter({ next, vocabSize: VOCAB, maxDraftTokens: 3 }) });
      expect(await answerOf(engine.generate(request(prompt), NEVER))).toMatchObject({
        tokens: expected.tokens,
        text: expected.text,
      });
      const unspeculated = await answerOf(engine.generate(request(prompt, { drafter: 'none' }), NEVER));
      expect(unspeculated).toMatchObject({
        tokens: expected.tokens,
        finish: { speculation: { drafter: 'none', maxDraftTokens: 0 } },
      });
      expect(unspeculated.finish.speculation.noDraft).toEqual({ 'disabled-by-request': expected.tokens.length - 1 });
    }
  });
});

describe('a drafter that fails', () => {
  const nextLogits = answersTexts({ 'Say it: ': 'hello world, and hello again<|end|>' });

  it.each([
    ['open', 0],
    ['propose', 0],
    ['propose', 3],
    ['observe', 0],
    ['observe', 2],
  ] as const)('in %s, after %i calls, is told of in the finish, and the request goes on', async (call, goodCalls) => {
    const { engine, recorder } = openEngine({ nextLogits, drafter: new ThrowingDrafter(call, goodCalls) });
    const { text, finish } = await answerOf(engine.generate(request('Say it: '), NEVER));
    expect(text).toBe('hello world, and hello again');
    expect(finish.speculation).toMatchObject({ drafter: 'throwing', drafterError: ThrowingDrafter.MESSAGE });
    expect(finish.speculation.noDraft['drafter-failed']).toBeGreaterThan(0);
    expect(recorder.finishes[0]?.finish).toEqual(finish);
  });

  it('to let go of its state is told of as well, and the next request is served', async () => {
    const { engine } = openEngine({ nextLogits, drafter: new ThrowingDrafter('dispose', 1) });
    await answerOf(engine.generate(request('Say it: '), NEVER));
    const { text, finish } = await answerOf(engine.generate(request('Say it: '), NEVER));
    expect([text, finish.speculation.drafterError]).toEqual(['hello world, and hello again', ThrowingDrafter.MESSAGE]);
    await answerOf(engine.generate(request('Say it: '), NEVER));
  });
});

it('encodes and renders as its tokenizer and template do', () => {
  const { engine } = openEngine({ nextLogits: answersTexts({}) });
  expect(engine.text.encode('hello<|end|>', { addSpecialTokens: false })).toEqual([TOKENIZER.tokenId('hello'), EOS]);
  expect(engine.text.renderChat([{ role: 'user', content: 'Hi' }])).toBe('Hi');
});
