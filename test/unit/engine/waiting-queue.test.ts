import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunningRequest } from '../../../src/engine/running-request.ts';
import { WaitingQueue } from '../../../src/engine/waiting-queue.ts';
import { NEVER, request } from './engine-fixture.ts';

const waiting = (priority: number, tokens = 1) =>
  new RunningRequest(request(new Array<number>(tokens).fill(1), { priority }), NEVER);

describe('requests that wait', () => {
  it('stand in the order of their priorities, lower ones first, and of arrival among equals', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -2, max: 2 })), (priorities) => {
        const queue = new WaitingQueue();
        const requests = priorities.map((priority) => waiting(priority));
        for (const one of requests) queue.push(one);
        expect([...queue]).toEqual(requests.toSorted((a, b) => a.priority - b.priority));
        expect(queue.first).toBe([...queue][0]);
      }),
    );
  });

  it('count by themselves and by the tokens of their prompts, until they leave', () => {
    const queue = new WaitingQueue();
    const [one, two] = [waiting(0, 5), waiting(0, 7)];
    queue.push(one);
    queue.push(two);
    expect([queue.length, queue.tokens]).toEqual([2, 12]);
    expect([queue.remove(one), queue.remove(one)]).toEqual([true, false]);
    expect([queue.length, queue.tokens, queue.first]).toEqual([1, 7, two]);
  });
});
