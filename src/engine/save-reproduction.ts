/** Files from which an answer that an audit found wrong can be decoded again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditReport } from './engine.ts';

/**
 * @param folder made if it is not there
 * @param facts of the server: version, model, options
 * @returns the file
 */
export function saveReproduction(folder: string, report: AuditReport, facts: Readonly<Record<string, unknown>>): string {
  const { request, drafter, differsAt, served, plain } = report;
  const file = join(folder, `audit-${Date.now()}-${request.id.replace(/[^\w.-]/g, '_')}.json`);
  const content = {
    ...facts,
    time: new Date().toISOString(),
    drafter,
    request,
    served: answer(served),
    plain: answer(plain),
    differsAt,
  };
  mkdirSync(folder, { recursive: true });
  // Prompts are their writers' business: nobody else on the machine may read them.
  writeFileSync(file, `${JSON.stringify(content, asJson, 2)}\n`, { mode: 0o600 });
  return file;
}

function answer(value: AuditReport['served'] | AuditReport['plain']) {
  return value === null ? null : { tokens: value.tokens, ...value.ending };
}

/** JSON has no numbers of 64 bits, and no maps. */
function asJson(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  return typeof value === 'bigint' ? value.toString() : value;
}
