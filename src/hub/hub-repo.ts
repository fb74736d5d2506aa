import { AppError } from '../core/app-error.ts';

/** A model repository at a revision. */
export interface HubRepo {
  /** `owner/name`, or a name alone. */
  readonly name: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
}

const NAME = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)?$/;
const REVISION = /^[A-Za-z0-9][\w./-]*$/;

/**
 * Reads `owner/name` or `owner/name@revision`; without one, the revision is `main`.
 * @throws AppError `invalid_config` when it is neither
 */
export function parseHubRepo(text: string): HubRepo {
  const at = text.indexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  const revision = at < 0 ? 'main' : text.slice(at + 1);
  if (NAME.test(name) && REVISION.test(revision) && !`${name}/${revision}`.includes('..')) return { name, revision };
  throw new AppError(
    'invalid_config',
    `Expected a repository as owner/name or owner/name@revision, got ${JSON.stringify(text)}; copy it from the page of the model`,
  );
}
