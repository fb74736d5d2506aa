import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { auditLog } from '../../../src/cli/audit-log.ts';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { AuditReport } from '../../../src/engine/engine.ts';
import { type LogLine, recordingLogger } from '../../support/recording-logger.ts';
import { request } from '../engine/engine-fixture.ts';

function setUp(folder: (parent: string) => string | null) {
  const parent = mkdtempSync(join(tmpdir(), 'blockdraft-audit-log-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const lines: LogLine[] = [];
  return { lines, parent, log: auditLog(recordingLogger(lines), folder(parent), { version: '9' }) };
}

const ending = { reason: 'length', stopReason: null } as const;
function report(outcome: AuditReport['outcome']): AuditReport {
  return {
    request: request([1, 2], { sampling: GREEDY }),
    drafter: 'd',
    outcome,
    differsAt: outcome === 'different' ? 1 : null,
    served: { tokens: [4, 5], ending },
    plain: { tokens: [4, 6], ending },
    error: outcome === 'failed' ? 'no room' : null,
  };
}

it('says nothing of equal answers, and saves the different ones', () => {
  const { lines, parent, log } = setUp((folder) => join(folder, 'audits'));
  log.onAudit?.(report('equal'));
  expect(lines).toEqual([]);
  const different = report('different');
  log.onAudit?.(different);
  const [file] = readdirSync(join(parent, 'audits'));
  expect(JSON.parse(readFileSync(join(parent, 'audits', file!), 'utf8'))).toMatchObject({ version: '9', differsAt: 1 });
  expect(lines).toMatchObject([
    {
      level: 'error',
      fields: { requestId: different.request.id, drafter: 'd', differsAt: 1, file: expect.stringContaining(file!) },
    },
  ]);
});

it('tells of a difference also without a folder, or with one that cannot be written, and of audits that failed', () => {
  const without = setUp(() => null);
  without.log.onAudit?.(report('different'));
  without.log.onAudit?.(report('failed'));
  expect(without.lines).toMatchObject([
    { level: 'error', fields: { file: null } },
    { level: 'warn', fields: { reason: 'no room' } },
  ]);
  const blocked = setUp((parent) => {
    writeFileSync(join(parent, 'file'), '');
    return join(parent, 'file');
  });
  blocked.log.onAudit?.(report('different'));
  expect(blocked.lines.map(({ level }) => level)).toEqual(['error', 'error']);
});
