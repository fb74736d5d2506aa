import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { abortWith } from '../../../src/core/abort-with.ts';

const listeners = (controller: AbortController) => getEventListeners(controller.signal, 'abort').length;

describe('a controller that aborts with signals', () => {
  it.each([0, 1])('does so with the first of them, for its reason (signal %i)', (index) => {
    const sources = [new AbortController(), new AbortController()];
    const controller = new AbortController();
    using _ = abortWith(controller, ...sources.map(({ signal }) => signal));
    expect(controller.signal.aborted).toBe(false);
    sources[index]!.abort('enough');
    expect(controller.signal).toMatchObject({ aborted: true, reason: 'enough' });
  });

  it('does so at once when one of them has aborted', () => {
    const source = new AbortController();
    const controller = new AbortController();
    using _ = abortWith(controller, source.signal, AbortSignal.abort('late'));
    expect(controller.signal).toMatchObject({ aborted: true, reason: 'late' });
    expect(listeners(source)).toBe(0);
  });

  it('leaves nothing behind with them, and no longer follows', () => {
    const source = new AbortController();
    const controller = new AbortController();
    {
      using _ = abortWith(controller, source.signal);
      expect(listeners(source)).toBe(1);
    }
    expect(listeners(source)).toBe(0);
    source.abort();
    expect(controller.signal.aborted).toBe(false);
  });

  it('may be one of many', async () => {
    const warned: Error[] = [];
    const note = (warning: Error) => warned.push(warning);
    process.on('warning', note);
    const source = new AbortController();
    const followers = Array.from({ length: 100 }, () => abortWith(new AbortController(), source.signal));
    // Warnings are told in the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(warned).toEqual([]);
    for (const follower of followers) follower[Symbol.dispose]();
    expect(listeners(source)).toBe(0);
  });
});
