import { describe, expect, it } from 'vitest';
import { queueDemand } from '../../../src/engine/queue-demand.ts';
import { request } from './engine-fixture.ts';

const prompt = (length: number) => new Array<number>(length).fill(1);
const ask = (...lengths: readonly number[]) => lengths.map((length) => request(prompt(length)));
/** A byte for each token. */
const bytesOf = ({ promptTokens }: { readonly promptTokens: readonly number[] }) => promptTokens.length;

describe('what waits', () => {
  it('are those for whom no sequence is free', () => {
    const requests = ask(10, 20, 30);
    expect(queueDemand(requests, { sequences: 0, bytes: 100 }, bytesOf, null)).toEqual({ requests: 3, tokens: 60 });
    expect(queueDemand(requests, { sequences: 2, bytes: 100 }, bytesOf, null)).toEqual({ requests: 1, tokens: 30 });
    expect(queueDemand(requests, { sequences: 9, bytes: 100 }, bytesOf, null)).toEqual({ requests: 0, tokens: 0 });
  });

  it('are those for whom memory is too short, and all behind them', () => {
    const requests = ask(10, 20, 5);
    expect(queueDemand(requests, { sequences: 9, bytes: 35 }, bytesOf, null)).toEqual({ requests: 0, tokens: 0 });
    expect(queueDemand(requests, { sequences: 9, bytes: 29 }, bytesOf, null)).toEqual({ requests: 2, tokens: 25 });
    expect(queueDemand(requests, { sequences: 9, bytes: 0 }, bytesOf, null)).toEqual({ requests: 3, tokens: 35 });
  });

  it('has the tokens of a prompt once where it is computed once, and none where that is under way', () => {
    const promptTokens = prompt(10);
    const choices = Array.from({ length: 3 }, () => request(promptTokens));
    const none = { sequences: 0, bytes: 0 };
    expect(queueDemand([...choices, ...ask(7)], none, bytesOf, null)).toEqual({ requests: 4, tokens: 37 });
    expect(queueDemand([...choices, ...ask(7)], none, bytesOf, [])).toEqual({ requests: 4, tokens: 17 });
    expect(queueDemand(choices, none, bytesOf, [request(promptTokens)])).toEqual({ requests: 3, tokens: 0 });
    expect(queueDemand(choices, { sequences: 1, bytes: 10 }, bytesOf, [])).toEqual({ requests: 2, tokens: 0 });
  });
});
