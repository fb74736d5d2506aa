/** The manifests against Kubernetes's own schemas, and against the server that they run. */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { serveCommand } from '../../../src/cli/serve-options.ts';
import { OPEN_PATHS } from '../../../src/server/routes/operations.ts';
import { DEPLOY, manifests, only, read } from './deploy-files.ts';
import schemas from './kubernetes-1.33.schema.json' with { type: 'json' };

const metadata = z.strictObject({ name: z.string() });

/** Of custom resources and of kustomize, as far as they are used here. */
const OWN_SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  'kustomize.config.k8s.io/v1beta1/Kustomization': z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    namespace: z.string().optional(),
    resources: z.array(z.string()).min(1),
    components: z.array(z.string()).optional(),
    labels: z.array(z.strictObject({ pairs: z.record(z.string(), z.string()) })).optional(),
    images: z.array(z.strictObject({ name: z.string(), newTag: z.string() })).optional(),
  }),
  'kustomize.config.k8s.io/v1alpha1/Component': z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    resources: z.array(z.string()).optional(),
    patches: z
      .array(
        z.union([
          z.strictObject({ path: z.string() }),
          z.strictObject({ target: z.strictObject({ kind: z.string(), name: z.string() }), patch: z.string() }),
        ]),
      )
      .optional(),
    images: z.array(z.strictObject({ name: z.string(), newTag: z.string() })).optional(),
    configMapGenerator: z
      .array(
        z.strictObject({
          name: z.string(),
          files: z.array(z.string().regex(/^[\w.-]+=[\w.-]+$/)),
          options: z.strictObject({ disableNameSuffixHash: z.boolean(), labels: z.record(z.string(), z.string()) }),
        }),
      )
      .optional(),
  }),
  'monitoring.coreos.com/v1/ServiceMonitor': z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    metadata,
    spec: z.strictObject({
      selector: z.strictObject({ matchLabels: z.record(z.string(), z.string()) }),
      endpoints: z.array(
        z.strictObject({
          port: z.string(),
          path: z.string(),
          interval: z.string().regex(/^\d+s$/),
          authorization: z.strictObject({ credentials: z.strictObject({ name: z.string(), key: z.string() }) }),
        }),
      ),
    }),
  }),
  'monitoring.coreos.com/v1/PrometheusRule': z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    metadata,
    spec: z.strictObject({
      groups: z.array(
        z.strictObject({
          name: z.string(),
          rules: z.array(
            z.strictObject({
              alert: z.string(),
              expr: z.string(),
              for: z
                .string()
                .regex(/^\d+m$/)
                .optional(),
              labels: z.record(z.string(), z.string()),
              annotations: z.record(z.string(), z.string()),
            }),
          ),
        }),
      ),
    }),
  }),
};

const ajv = new Ajv({ strict: false, allErrors: true, allowUnionTypes: true });
ajv.addSchema(schemas, 'kubernetes');

const all = manifests().filter(({ file }) => !file.endsWith('adapter-values.yaml') && !file.endsWith('test.yaml'));

const patches = new Set(
  all.flatMap(({ file, object }) =>
    (object.patches ?? []).flatMap(({ path }: { path?: string }) => (path === undefined ? [] : [join(dirname(file), path)])),
  ),
);

describe('each manifest', () => {
  it.each(all.map(({ file, object }) => [file, object] as const))('%s is what Kubernetes takes', (file, object) => {
    const type = `${object.apiVersion}/${object.kind}`;
    const own = OWN_SCHEMAS[type];
    if (own !== undefined) {
      expect(own.safeParse(object).error?.issues ?? []).toEqual([]);
      return;
    }
    expect(Object.keys(schemas.kinds)).toContain(type);
    const validate = ajv.compile({ $ref: `kubernetes#/kinds/${type.replaceAll('/', '~1')}` });
    validate(object);
    // A patch says only what it changes.
    const errors = (validate.errors ?? []).filter(({ keyword }) => !(patches.has(file) && keyword === 'required'));
    expect(errors).toEqual([]);
  });

  it('is part of a kustomization, which names no file that is not there', () => {
    const named = all
      .filter(({ object }) => ['Kustomization', 'Component'].includes(object.kind))
      .flatMap(({ file, object }) =>
        [
          ...(object.resources ?? []),
          ...(object.components ?? []),
          ...(object.patches ?? []).flatMap((patch: { path?: string }) => patch.path ?? []),
          ...(object.configMapGenerator ?? []).flatMap((generator: { files: readonly string[] }) =>
            generator.files.map((entry) => entry.split('=')[1]!),
          ),
        ].map((path) => join(dirname(file), path)),
      );
    for (const path of named) expect(existsSync(join(DEPLOY, path)), path).toBe(true);
    const parts = all.filter(({ object }) => !['Kustomization', 'Component'].includes(object.kind));
    for (const { file } of parts) expect(named).toContain(file);
    // A component that no example has is never rendered.
    const components = all.filter(({ object }) => object.kind === 'Component');
    for (const { file } of components) expect(named).toContain(dirname(file));
    const rendered = /for folder in (.+); do/.exec(read('deploy/lint.sh'))?.[1]?.split(' ');
    const kustomizations = all.filter(({ object }) => object.kind === 'Kustomization');
    expect(rendered?.toSorted()).toEqual(kustomizations.map(({ file }) => basename(dirname(file))).toSorted());
  });
});

describe('the deployment', () => {
  const pod = only('Deployment').spec.template.spec;
  const server = pod.containers[0];
  const env = new Map<string, string>(server.env.map(({ name, value }: { name: string; value: string }) => [name, value]));

  it('sets options that the server has, to values that it takes', () => {
    const options = serveCommand();
    const known = options.options.map((option) => option.envVar);
    for (const { object, file } of all) {
      if (object.kind !== 'Deployment') continue;
      for (const { name } of object.spec.template.spec.containers[0].env) expect(known, `${file} ${name}`).toContain(name);
    }
    const args = [...env].flatMap(([name, value]) => [options.options.find(({ envVar }) => envVar === name)!.long!, value]);
    expect(() => options.exitOverride().parse(args, { from: 'user' })).not.toThrow();
  });

  it('asks paths that need no key, on a port that is there', () => {
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
      expect(OPEN_PATHS).toContain(server[probe].httpGet.path);
      expect(server.ports.map(({ name }: { name: string }) => name)).toContain(server[probe].httpGet.port);
    }
    // A server that drains is alive and not ready: a restart would cut its answers.
    expect(server.livenessProbe.httpGet.path).toBe('/live');
    expect(server.readinessProbe.httpGet.path).toBe('/ready');
  });

  it('lets a pod end by itself: grace is longer than preStop, drain, last words and last traces', () => {
    const preStop = Number(server.lifecycle.preStop.exec.command[1]);
    const drain = Number(env.get('BLOCKDRAFT_SHUTDOWN_TIMEOUT'));
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(preStop + drain + 1 + 3);
  });

  it('has as many threads as cores, and caches that fit into its memory', () => {
    const { limits, requests } = server.resources;
    expect(requests).toEqual(limits);
    expect(env.get('BLOCKDRAFT_THREADS')).toBe(limits.cpu);
    const gibibytes = (text: string) => Number.parseFloat(text) / (text.endsWith('MiB') ? 1024 : 1);
    const caches = gibibytes(env.get('BLOCKDRAFT_KV_CACHE_BYTES')!) + gibibytes(env.get('BLOCKDRAFT_PREFIX_CACHE_BYTES')!);
    expect(Number.parseFloat(limits.memory)).toBeGreaterThan(caches + 1);
  });

  it('mounts all that it names', () => {
    const volumes = pod.volumes.map(({ name }: { name: string }) => name);
    const mounts = server.volumeMounts.map(({ name }: { name: string }) => name);
    expect(mounts.toSorted()).toEqual(volumes.toSorted());
    expect(pod.volumes[0].persistentVolumeClaim.claimName).toBe(only('PersistentVolumeClaim').metadata.name);
    expect(pod.serviceAccountName).toBe(only('ServiceAccount').metadata.name);
    expect(env.get('BLOCKDRAFT_API_KEY_FILE')).toMatch(/^\/run\/keys\//);
  });

  it('is what service, budget, network policy, autoscaler and monitor select', () => {
    const { labels } = only('Deployment').spec.template.metadata;
    expect(only('Service').spec.selector).toEqual(labels);
    expect(only('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels);
    expect(only('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(only('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(only('Deployment').metadata.name);
    expect(only('ServiceMonitor').spec.selector.matchLabels).toEqual(only('Service').metadata.labels);
    expect(only('ServiceMonitor').spec.endpoints[0].port).toBe(only('Service').spec.ports[0].name);
  });
});

describe('the Dockerfile', () => {
  const dockerfile = read('Dockerfile');
  const ignored = read('.dockerignore').split('\n');

  it('copies what is there and is not left out', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources]) => sources!.split(' '));
    expect(copied).toContain('src');
    for (const path of copied) {
      expect(existsSync(join(DEPLOY, '..', path)), path).toBe(true);
      expect(ignored).toContain(`!${path}`);
    }
    expect(
      ignored
        .filter((line) => line.startsWith('!'))
        .map((line) => line.slice(1))
        .toSorted(),
    ).toEqual([...new Set(copied)].toSorted());
  });

  it('sets options that the server has, runs without rights, and asks whether it is ready', () => {
    const known = [...serveCommand().options.map((option) => option.envVar), 'NODE_ENV'];
    for (const [, name] of dockerfile.matchAll(/^(?:ENV| {3}) (\w+)=/gm)) expect(known).toContain(name);
    expect(dockerfile).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    const path = /process\.env\.BLOCKDRAFT_PORT\}(\/\w+)`/.exec(dockerfile)?.[1];
    expect(OPEN_PATHS).toContain(path);
  });

  it('is of a version of Node that the package takes', () => {
    const { engines } = JSON.parse(read('package.json'));
    const major = Number(/^ARG NODE_IMAGE=node:(\d+)/m.exec(dockerfile)?.[1]);
    expect(engines.node).toBe(`>=${major}`);
  });
});
