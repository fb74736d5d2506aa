import type { EngineObserver } from '../engine/engine.ts';
import { saveReproduction } from '../engine/save-reproduction.ts';
import type { Logger } from '../server/logger.ts';

/** Files that one server writes: after so many, more of them say nothing new. */
const MAX_FILES = 100;

/**
 * Tells of audits that found a difference, and saves what is needed to repeat them.
 * @param folder null: nothing is saved
 * @param facts of the server, for the files
 */
export function auditLog(logger: Logger, folder: string | null, facts: Readonly<Record<string, unknown>>): EngineObserver {
  let files = 0;
  return {
    onStart: () => undefined,
    onStep: () => undefined,
    onFinish: () => undefined,
    onAudit(report) {
      const { request, drafter, outcome, differsAt, error } = report;
      if (outcome === 'equal') return;
      const fields = { requestId: request.id, drafter };
      if (outcome === 'failed') {
        logger.warn({ ...fields, reason: error }, 'audit failed');
        return;
      }
      let file: string | null = null;
      try {
        if (folder !== null && files < MAX_FILES) file = saveReproduction(folder, report, facts);
        files += 1;
      } catch (cause) {
        logger.error({ ...fields, error: cause }, 'saving what an audit found failed');
      }
      logger.error({ ...fields, differsAt, file }, 'audit found an answer that is not the target’s own');
    },
  };
}
