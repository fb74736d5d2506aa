import type { DrafterStatus, Engine } from '../../engine/engine.ts';
import { HttpError } from '../http-error.ts';

/** @throws HttpError 404 when no drafter of the server has that name */
export function namedDrafter(engine: Engine, name: string): DrafterStatus {
  const status = engine.drafterStatus();
  const found = status.find((drafter) => drafter.name === name);
  if (found !== undefined) return found;
  const names = status.map((drafter) => drafter.name).join(', ');
  throw new HttpError(404, `Expected a drafter of ${names}, got ${name}. Choose one of them.`, {
    details: { param: 'name', code: 'drafter_not_found' },
  });
}
