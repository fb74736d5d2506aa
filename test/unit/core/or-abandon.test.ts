import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { orAbandon } from '../../../src/core/or-abandon.ts';
import { within } from '../../support/labelled-timeout.ts';

const endless = new Promise<never>(() => undefined);
const NEVER = new AbortController().signal;
const LONG_MS = 60_000;

describe('work that may be left alone', () => {
  it('comes to what it comes to, and leaves nothing behind', async () => {
    const controller = new AbortController();
    expect(await orAbandon('Work', Promise.resolve(7), controller.signal, 0)).toBe(7);
    await expect(orAbandon('Work', Promise.reject(new Error('no')), controller.signal, 0)).rejects.toThrow('no');
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('is left alone some time after the signal has aborted', async () => {
    const controller = new AbortController();
    const waiting = orAbandon('Work', endless, controller.signal, 1);
    controller.abort();
    await expect(within('the end', waiting)).rejects.toMatchObject({ code: 'aborted', message: 'Work was aborted' });
    await expect(within('the end', orAbandon('Work', endless, AbortSignal.abort(), 1))).rejects.toThrow('Work');
  });

  it('has that time to end by itself', async () => {
    const ended = new Promise((resolve) => setImmediate(() => resolve('ended')));
    expect(await orAbandon('Work', ended, AbortSignal.abort(), LONG_MS)).toBe('ended');
    expect(await orAbandon('Work', Promise.resolve(1), NEVER, LONG_MS)).toBe(1);
  });
});
