/** `POST /v1/drafters/…/validate`, `…/record`, `…/compare` and so on start jobs; `/v1/drafters/jobs` tells of them. */
import type { Context, Hono } from 'hono';
import type { AppEnv } from '../app-env.ts';
import type { GenerationService } from '../generation-service.ts';
import { HttpError } from '../http-error.ts';
import { readJsonBody } from '../read-json-body.ts';
import { fieldError, parseRequest } from '../schemas/parse-request.ts';
import { type JobFolders, jobFolder, jobPath } from '../validation/job-folders.ts';
import type { ValidationJob, ValidationJobs } from '../validation/validation-jobs.ts';
import {
  compareBody,
  diagnoseBody,
  exportHardBody,
  recordBody,
  settingsOf,
  validateBody,
  watchBody,
} from '../validation/validation-request.ts';
import type { Settings, ValidatedDrafter, ValidationTask } from '../validation/validation-runner.ts';
import { namedDrafter } from './named-drafter.ts';

export interface ValidationRouteOptions {
  readonly service: GenerationService;
  /** Null: this server measures no drafters. */
  readonly jobs: ValidationJobs | null;
  readonly maxBodyBytes: number;
}

/** Registers the routes. */
export function addValidationRoutes(app: Hono<AppEnv>, { service, jobs, maxBodyBytes }: ValidationRouteOptions): void {
  const allowed = (): ValidationJobs => {
    if (jobs !== null) return jobs;
    throw new HttpError(
      403,
      'Expected a server that measures drafters, got one without; start it with --allow-validation and --api-key',
      { details: { code: 'not_allowed' } },
    );
  };
  const body = (context: Context<AppEnv>) => readJsonBody(context.req.raw, maxBodyBytes);
  const started = (context: Context<AppEnv>, task: ValidationTask) => {
    const job = allowed().start(task);
    return context.json(jobCard(job), 202, { location: `/v1/drafters/jobs/${job.id}` });
  };

  app.post('/v1/drafters/:name/validate', async (context) => {
    const { folders } = allowed();
    const { prompts = null, out, ...settings } = parseRequest(validateBody, await body(context));
    const drafters = [drafterOf(service, context.req.param('name'))];
    return started(context, {
      kind: 'validate',
      drafters,
      prompts,
      settings: withOutput(folders, settings, out),
    });
  });
  app.post('/v1/drafters/:name/diagnose', async (context) => {
    allowed();
    const { prompts = null, ...settings } = parseRequest(diagnoseBody, await body(context));
    const drafter = drafterOf(service, context.req.param('name'));
    if (drafter.kind !== 'dflash') throw notMeasured('a DFlash drafter', drafter);
    return started(context, { kind: 'diagnose', drafters: [drafter], prompts, settings: settingsOf(settings) });
  });
  app.post('/v1/drafters/:name/record', async (context) => {
    const { folders } = allowed();
    const { prompts = null, out, ...settings } = parseRequest(recordBody, await body(context));
    const drafter = drafterOf(service, context.req.param('name'));
    if (drafter.folder === null && settings.taps === undefined) {
      throw fieldError('taps', `a list of layer ids, as ${drafter.name} taps none`, undefined, 'missing_parameter');
    }
    return started(context, {
      kind: 'record',
      drafters: [drafter],
      prompts,
      settings: withOutput(folders, settings, out),
    });
  });
  app.post('/v1/drafters/compare', async (context) => {
    const { folders } = allowed();
    const { prompts = null, drafters: names, out, ...settings } = parseRequest(compareBody, await body(context));
    const drafters = names.map((name) => drafterOf(service, name));
    return started(context, {
      kind: 'compare',
      drafters,
      prompts,
      settings: withOutput(folders, settings, out),
    });
  });
  app.post('/v1/drafters/export-hard', async (context) => {
    const { folders } = allowed();
    const { validation, out, ...settings } = parseRequest(exportHardBody, await body(context));
    return started(context, {
      kind: 'export-hard',
      drafters: [],
      prompts: null,
      settings: {
        validation: jobFolder(folders, 'output', 'validation', validation, 'answers.jsonl'),
        ...withOutput(folders, settings, out),
      },
    });
  });
  app.post('/v1/drafters/watch', async (context) => {
    const { folders } = allowed();
    const { prompts = null, watch, training_log, out, ...settings } = parseRequest(watchBody, await body(context));
    const runs = watch.map(named((path) => jobFolder(folders, 'runs', 'watch', path)));
    const logs = training_log?.map(named((path) => jobPath(folders, 'runs', 'training_log', path)));
    return started(context, {
      kind: 'watch',
      drafters: [],
      prompts,
      settings: {
        ...withOutput(folders, settings, out),
        watch: runs,
        ...(logs === undefined ? {} : { training_log: logs }),
      },
    });
  });
  app.get('/v1/drafters/jobs', (context) =>
    context.json({
      object: 'list',
      data: allowed()
        .list()
        .map((job) => ({ ...jobCard(job), result: null })),
    }),
  );
  app.get('/v1/drafters/jobs/:id', (context) => context.json(jobCard(allowed().get(context.req.param('id')))));
  app.delete('/v1/drafters/jobs/:id', async (context) =>
    context.json(jobCard(await allowed().cancel(context.req.param('id')))),
  );
}

/** @throws HttpError 404 when no drafter has that name, 400 when it is none that can be measured apart from this server */
function drafterOf(service: GenerationService, name: string): ValidatedDrafter {
  const { kind, folder } = namedDrafter(service.readyEngine(), name);
  if (folder !== null || kind === 'ngram') return { name, kind, folder };
  throw notMeasured('a drafter that was loaded from a folder, or ngram', { name, kind });
}

function notMeasured(expected: string, { name, kind }: Pick<ValidatedDrafter, 'name' | 'kind'>): HttpError {
  return new HttpError(400, `Expected ${expected}, got ${name} of kind ${kind}. Choose another one of /v1/drafters.`, {
    details: { param: 'name', code: 'invalid_value' },
  });
}

/** @param path where the job writes; undefined: nowhere */
function withOutput(folders: JobFolders, given: Parameters<typeof settingsOf>[0], path: string | undefined): Settings {
  const settings = settingsOf(given);
  return path === undefined ? settings : { ...settings, out: jobPath(folders, 'output', 'out', path) };
}

/** Splits `name=path`, and puts another path in its place. */
function named(located: (path: string) => string) {
  return (words: string): string => {
    const [, name = '', path = words] = /^([\w.-]+=)(.+)$/.exec(words) ?? [];
    return `${name}${located(path)}`;
  };
}

function jobCard({ id, kind, drafters, createdAt, endedAt, status, progress, outcome, error }: ValidationJob) {
  return {
    id,
    object: 'drafter.job',
    kind,
    drafters,
    created_at: seconds(createdAt),
    finished_at: endedAt === null ? null : seconds(endedAt),
    status,
    progress,
    exit_code: outcome?.exitCode ?? null,
    error: error === null ? null : { message: error },
    result: outcome?.result ?? null,
  };
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
