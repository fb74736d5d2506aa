/** Real models on a machine without the memory for more than one sequence at a time. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Session } from '../../src/onnx/session.ts';
import { greedyAnswer, openTestbed, testbedPrompts } from '../support/testbed-engine.ts';

it('serves one after the other, with drafts, and that is told once', async () => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'blockdraft-fewer-'));
  onTestFinished(() => rmSync(cacheDir, { recursive: true }));
  const create = Session.create.bind(Session);
  // The smallest ones of target and drafter.
  let left = 2;
  const spy = vi.spyOn(Session, 'create').mockImplementation(async (...asked) => {
    if (left-- <= 0) throw new Error('no memory');
    return await create(...asked);
  });
  onTestFinished(() => spy.mockRestore());
  const told: [number, string][] = [];
  const steps: number[] = [];
  const observer = {
    onStart: () => undefined,
    onStep: ({ sequences }: { readonly sequences: number }) => void steps.push(sequences),
    onFinish: () => undefined,
    onFewerSequences: (...fewer: [number, string]) => void told.push(fewer),
  };
  const opened = await openTestbed({ cacheDir, observers: [observer] });
  try {
    const answers = testbedPrompts()
      .slice(0, 3)
      .map((prompt) => greedyAnswer(opened, prompt, { maxTokens: 20 }));
    for (const { reason, speculation } of await Promise.all(answers)) {
      expect([reason, speculation.drafterError]).toEqual(['length', null]);
      expect(speculation.rounds.some(({ accepted }) => accepted > 0)).toBe(true);
    }
    expect(new Set(steps)).toEqual(new Set([1]));
    expect(told).toEqual([[1, 'no memory']]);
  } finally {
    await opened.engine[Symbol.asyncDispose]();
  }
});
