import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunningRequest } from '../../../src/engine/running-request.ts';
import { WaitingQueue } from '../../../src/engine/waiting-queue.ts';
import { NEVER, request } from './engine-fixture.ts';

const waiting = (priority: number, arrived = 0) => new RunningRequest(request([1], { priority }), NEVER, arrived);

describe('requests that wait', () => {
  it('stand in the order of their priorities, lower ones first, and of arrival among equals', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -2, max: 2 })), (priorities) => {
        const queue = new WaitingQueue();
        const requests = priorities.map((priority) => waiting(priority));
        for (const one of requests) queue.push(one);
        expect([...queue]).toEqual(requests.toSorted((a, b) => a.request.priority! - b.request.priority!));
        expect(queue.first).toBe([...queue][0]);
      }),
    );
  });

  it('come to their turn behind any flow of more urgent ones, after ten seconds for each step between them', () => {
    const queue = new WaitingQueue();
    const patient = waiting(3, 0);
    queue.push(patient);
    const flow = [1, 29_000, 31_000, 40_000].map((arrived) => waiting(0, arrived));
    for (const one of flow) queue.push(one);
    expect([...queue]).toEqual([flow[0], flow[1], patient, flow[2], flow[3]]);
  });

  it('are as many as have not left', () => {
    const queue = new WaitingQueue();
    const [one, two] = [waiting(0), waiting(0)];
    queue.push(one);
    queue.push(two);
    expect(queue.length).toBe(2);
    expect([queue.remove(one), queue.remove(one)]).toEqual([true, false]);
    expect([queue.length, queue.first]).toEqual([1, two]);
  });
});
