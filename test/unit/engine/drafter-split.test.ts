import { describe, expect, it } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import { checkCompared, parseSplit, pickDrafter, requestFraction } from '../../../src/engine/drafter-split.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { answerOf, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });
const half = new WrongFromDrafter({ next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB, wrongFrom: 2, maxDraftTokens: 4 });
const prompt = (i: number) => [i % VOCAB, (i * 7) % VOCAB, 3];

describe('a split', () => {
  it('is read from the command line, and adds up to one', () => {
    expect([...parseSplit('a=3,b=1')]).toEqual([
      ['a', 0.75],
      ['b', 0.25],
    ]);
    expect([...parseSplit(' dflash-v2=.8 , none=0.2 ')]).toEqual([
      ['dflash-v2', 0.8],
      ['none', 0.2],
    ]);
  });

  it.each(['', 'a', 'a=', 'a=-1', 'a=0', 'a=1,a=2', 'a=1,,b=1', 'a=NaN', 'a=1e3'])('refuses %j', (text) => {
    expect(() => parseSplit(text)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
  });

  it('refuses drafters that are not loaded, and those that the target does not verify', () => {
    const loaded = [
      { name: 'a', synthetic: false },
      { name: 'none', synthetic: false },
    ];
    checkCompared('--split', ['a', 'none'], loaded);
    expect(() => checkCompared('--split', ['b'], loaded)).toThrow(/a, none.*got b/);
    expect(() => checkCompared('--split', ['a'], [...loaded, { name: 's', synthetic: true }])).toThrow(/synthetic/);
    checkCompared('--split', [], [{ name: 's', synthetic: true }]);
  });

  it('gives each drafter its share, and a repeated request the same drafter', () => {
    const weights = parseSplit('a=0.8,b=0.2');
    const asked = Array.from({ length: 2000 }, (_, i) => request([i, 1], { sampling: { ...GREEDY, seed: 7n } }));
    const picked = asked.map((one) => pickDrafter(weights, one));
    const share = picked.filter((name) => name === 'b').length / picked.length;
    expect(share).toBeGreaterThan(0.17);
    expect(share).toBeLessThan(0.23);
    expect(asked.map((one) => pickDrafter(weights, { ...one, id: 'again' }))).toEqual(picked);
  });

  it('draws anew for another seed and another purpose', () => {
    const asked = request([1, 2]);
    const other = { ...asked, sampling: { ...GREEDY, seed: 8n } };
    const points = [requestFraction(asked, 'split'), requestFraction(other, 'split'), requestFraction(asked, 'shadow')];
    expect(new Set(points).size).toBe(3);
  });

  it('never picks a weight of zero', () => {
    const weights = parseSplit('a=1,b=0');
    for (let i = 0; i < 200; i++) expect(pickDrafter(weights, request([i]))).toBe('a');
  });
});

describe('an engine with a split', () => {
  it('serves by weight, counts by drafter, changes no token, and obeys a request that names its drafter', async () => {
    const split = parseSplit('oracle=0.5,wrong-from=0.3,none=0.2');
    const { engine, recorder } = openEngine({ nextLogits, more: [half], parts: { split } });
    const { engine: plain } = openEngine({ nextLogits, drafter: null });
    const used = new Map<string, number>();
    for (let i = 0; i < 40; i++) {
      const asked = request(prompt(i), { maxTokens: 12, ignoreEos: true, drafter: i < 30 ? null : 'oracle' });
      const answer = await answerOf(engine.generate(asked, NEVER));
      expect(answer.tokens).toEqual((await answerOf(plain.generate({ ...asked, drafter: null }, NEVER))).tokens);
      const { drafter } = answer.finish.speculation;
      expect(drafter).toBe(asked.drafter ?? pickDrafter(split, asked));
      used.set(drafter, (used.get(drafter) ?? 0) + 1);
    }
    expect([...used.keys()].toSorted()).toEqual(['none', 'oracle', 'wrong-from']);
    for (const status of engine.drafterStatus()) {
      expect(status.requests).toBe(used.get(status.name));
      const rounds = recorder.steps.flatMap((step) => step.rounds).filter(({ drafter }) => drafter === status.name);
      const drafts = rounds.filter(({ drafted }) => drafted > 0);
      expect(status.counts.numDrafts).toBe(drafts.length);
      expect(status.counts.numAcceptedTokens).toBe(drafts.reduce((sum, { accepted }) => sum + accepted, 0));
      expect(status.counts.acceptanceLength?.requests).toBe(status.name === 'none' ? undefined : used.get(status.name));
    }
    const [oracle, wrong, none] = engine.drafterStatus();
    expect([oracle, wrong, none].map((status) => status?.weight)).toEqual([0.5, 0.3, 0.2]);
    expect(oracle).toMatchObject({ kind: 'oracle', isDefault: true, lengthPolicy: 'fixed', off: null, maxDraftTokens: 4 });
    expect(wrong?.counts.acceptedPerPos.slice(2)).toEqual([0, 0]);
    expect(none?.counts.noDraft).toHaveProperty('disabled-by-request');
  });

  it('says why a drafter is off', async () => {
    const hung = new WrongFromDrafter({ next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB, wrongFrom: 0 });
    hung.propose = (_requests, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gave up')), { once: true }));
    const { engine } = openEngine({ nextLogits, drafter: hung, limits: { drafterTimeoutMs: 5 } });
    expect(engine.drafterStatus()[0]?.off).toBeNull();
    await answerOf(engine.generate(request([1, 2], { maxTokens: 5, ignoreEos: true }), NEVER));
    expect(engine.drafterStatus()[0]?.off).toMatch(/wrong-from did not answer within 5 ms/);
  });
});
