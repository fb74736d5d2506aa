import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type * as Accept from '../../../src/decode/accept.ts';
import type { AuditReport, EngineObserver } from '../../../src/engine/engine.ts';
import { saveReproduction } from '../../../src/engine/save-reproduction.ts';
import { until } from '../../support/labelled-timeout.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { answerOf, type EngineOptions, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

const fault = vi.hoisted(() => ({ acceptsAll: false }));

vi.mock('../../../src/decode/accept.ts', async (original) => {
  const { accept } = await original<typeof Accept>();
  const broken: typeof accept = (draft, choose, emit) =>
    accept(draft, (index) => (fault.acceptsAll && index < draft.length ? draft[index]! : choose(index)), emit);
  return { accept: broken };
});

const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 9, memory: 4 });

function openAudited(rate = 1, options: Partial<EngineOptions> = {}) {
  const audits: AuditReport[] = [];
  const observer: EngineObserver = {
    onStart: () => undefined,
    onStep: () => undefined,
    onFinish: () => undefined,
    onAudit: (report) => audits.push(report),
  };
  const drafter = new WrongFromDrafter({
    next: nextToken(nextLogits, GREEDY),
    vocabSize: VOCAB,
    wrongFrom: 1,
    maxDraftTokens: 4,
  });
  const opened = openEngine({ nextLogits, drafter, ...options, parts: { auditRate: rate, observers: [observer] } });
  return { ...opened, audits };
}

describe('a self-audit', () => {
  it('finds answers that are the target’s equal, greedy and sampled, whatever ended them', async () => {
    const { engine, audits } = openAudited();
    const sampling = { ...GREEDY, temperature: 1, seed: 4n };
    const asked = [
      request([1, 2, 3], { maxTokens: 20, ignoreEos: true }),
      request([4, 5, 6], { maxTokens: 20, ignoreEos: true, sampling }),
      request([7, 8, 9], { maxTokens: 20, ignoreEos: true, drafter: 'none' }),
    ];
    for (const one of asked) await answerOf(engine.generate(one, NEVER));
    const stop = (await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 5, ignoreEos: true }), NEVER))).tokens[2]!;
    await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 20, stopTokenIds: [stop] }), NEVER));
    await until('five audits', () => audits.length === 5);
    expect(audits.map(({ outcome }) => outcome)).toEqual(new Array(5).fill('equal'));
    expect(new Set(audits.map(({ request: { id } }) => id)).size).toBe(5);
  });

  it('catches an accept path that takes drafts unseen, and says where', async () => {
    const { engine, audits } = openAudited();
    fault.acceptsAll = true;
    onTestFinished(() => {
      fault.acceptsAll = false;
    });
    const asked = request([1, 2, 3], { maxTokens: 20, ignoreEos: true });
    const { tokens } = await answerOf(engine.generate(asked, NEVER));
    await until('an audit', () => audits.length === 1);
    const [audit] = audits;
    // The first token is the prompt's, the second the draft's right one, the third its wrong one.
    expect(audit).toMatchObject({ outcome: 'different', differsAt: 2, drafter: 'wrong-from', error: null });
    expect(audit?.served.tokens).toEqual(tokens);
    expect(audit?.plain?.tokens).toHaveLength(20);
    expect(audit?.plain?.tokens[2]).not.toBe(tokens[2]);
  });

  it('that cannot decode an answer again says so, and goes on', async () => {
    const duringStep = () => {
      if (engine.load().running === 0 && audits.length === 0) throw new Error('out of order');
    };
    const { engine, audits, target } = openAudited(1, { duringStep });
    for (let i = 0; i < 2; i++) await answerOf(engine.generate(request([i, 2], { maxTokens: 3, ignoreEos: true }), NEVER));
    await until('two audits', () => audits.length === 2);
    expect(audits).toMatchObject([{ outcome: 'failed', error: 'out of order', plain: null }, { outcome: 'equal' }]);
    expect(target.openCaches).toBe(0);
  });

  it('leaves what is needed to repeat it, and nobody else can read it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'blockdraft-audit-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const asked = request([1, 2, 3], { id: '../x y', sampling: { ...GREEDY, seed: 2n ** 60n } });
    const served = { tokens: [4, 5], ending: { reason: 'length', stopReason: null } } as const;
    const plain = { tokens: [4, 6], ending: { reason: 'length', stopReason: null } } as const;
    const report: AuditReport = {
      request: asked,
      drafter: 'd',
      outcome: 'different',
      differsAt: 1,
      served,
      plain,
      error: null,
    };
    const file = saveReproduction(join(folder, 'new'), report, { version: '9' });
    expect(file).toMatch(/new\/audit-\d+-.._x_y\.json$/);
    expect(statSync(file).mode & 0o077).toBe(0);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      version: '9',
      drafter: 'd',
      differsAt: 1,
      request: { promptTokens: [1, 2, 3], sampling: { seed: String(2n ** 60n) } },
      served: { tokens: [4, 5], reason: 'length' },
      plain: { tokens: [4, 6] },
    });
  });

  it('steps aside for a request that comes, and is done later', async () => {
    let held = 0;
    const duringStep = (_step: number, signal?: AbortSignal) => {
      if (engine.load().running > 0 || held > 0) return;
      held++;
      return new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }));
    };
    const { engine, audits } = openAudited(1, { duringStep });
    await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 6, ignoreEos: true }), NEVER));
    await until('a step of the audit', () => held === 1);
    const second = answerOf(engine.generate(request([4, 5], { maxTokens: 6, ignoreEos: true }), NEVER));
    expect((await second).tokens).toHaveLength(6);
    await until('both audits', () => audits.length === 2);
    expect(audits.map(({ outcome }) => outcome)).toEqual(['equal', 'equal']);
  });

  it('never runs beside a request, and leaves requests that were given up alone', async () => {
    const { engine, audits, target } = openAudited();
    const gone = new AbortController();
    for await (const event of engine.generate(request([1, 2, 3], { ignoreEos: true }), gone.signal)) {
      if (event.type === 'tokens') gone.abort();
    }
    const running = engine.generate(request([6, 2, 3], { maxTokens: 100, ignoreEos: true }), NEVER)[Symbol.asyncIterator]();
    await running.next();
    await answerOf(engine.generate(request([4, 5, 6], { maxTokens: 2, ignoreEos: true }), NEVER));
    expect(audits).toEqual([]);
    for (let result = await running.next(); result.done !== true; result = await running.next());
    await until('two audits', () => audits.length === 2);
    expect(target.openCaches).toBe(0);
  });

  it('looks at the share that was asked for, and at nothing by default', async () => {
    const { engine, audits } = openAudited(0.25);
    for (let i = 0; i < 40; i++) await answerOf(engine.generate(request([i, 2], { maxTokens: 3, ignoreEos: true }), NEVER));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(audits.length).toBeGreaterThan(2);
    expect(audits.length).toBeLessThan(22);
  });
});
