import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { UNFINISHED_PULL_FILE } from '../../../src/core/unfinished-pull.ts';
import { hubOptionsFromEnv } from '../../../src/hub/hub-client.ts';
import { parseHubRepo } from '../../../src/hub/hub-repo.ts';
import { type PullOptions, pullRepo } from '../../../src/hub/pull-repo.ts';
import { SOURCE_FILE } from '../../../src/hub/put-in-place.ts';
import { f32, safetensors, temporaryFolder, weights } from '../checkpoint/checkpoint-fixture.ts';
import { expectAppError } from '../checkpoint/expect-app-error.ts';
import { COMMIT, FakeHub, type FakeHubOptions, gitBlob, sha256 } from './fake-hub.ts';

const WEIGHTS = randomBytes(300_000);
const FILES = {
  'model.safetensors': WEIGHTS,
  'config.json': Buffer.from('{"model_type": "qwen3"}'),
  'tokenizer.json': Buffer.from('{}'),
  'chat_template.jinja': Buffer.from('{{ messages }}'),
  'merges.txt': Buffer.from('a b'),
};
const LARGE = ['model.safetensors'];

async function pull(hub: FakeHub, options: Partial<PullOptions> = {}) {
  const folder = options.folder ?? (await temporaryFolder());
  const pulled = await pullRepo({
    hub: { endpoint: hub.endpoint, token: null },
    repo: parseHubRepo('some/model'),
    retryDelayMs: 1,
    ...options,
    folder,
  });
  return { folder, pulled };
}

async function open(options: Partial<FakeHubOptions> = {}): Promise<FakeHub> {
  return FakeHub.open({ files: FILES, large: LARGE, ...options });
}

/** Comparing long buffers element by element takes half a second. */
function digests(files: Readonly<Record<string, Buffer>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, data]) => [name, sha256(data)]));
}

async function contents(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).filter((name) => name !== SOURCE_FILE);
  return digests(Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))]))));
}

describe('a repository is pulled', () => {
  it('with its weights, configuration and tokenizer, and what they were made from', async () => {
    const progress: (readonly [number, number])[] = [];
    const hub = await open();
    const { folder, pulled } = await pull(hub, { onProgress: (done, total) => progress.push([done, total]) });
    expect(await contents(folder)).toEqual(digests(FILES));
    const total = Object.values(FILES).reduce((sum, data) => sum + data.length, 0);
    expect(pulled).toMatchObject({ commit: COMMIT, bytes: total });
    expect(progress.at(-1)).toEqual([total, total]);
    expect(JSON.parse(await readFile(join(folder, SOURCE_FILE), 'utf8'))).toMatchObject({
      repo: 'some/model',
      revision: 'main',
      commit: COMMIT,
      files: expect.arrayContaining([
        { path: 'model.safetensors', kind: 'sha256', value: sha256(WEIGHTS) },
        { path: 'config.json', kind: 'git-blob', value: gitBlob(FILES['config.json']) },
      ]),
    });
  });

  it('at the revision that was asked for, and as one commit', async () => {
    const hub = await open();
    await pull(hub, { repo: parseHubRepo('some/model@v1.0') });
    const [first, ...others] = hub.seen.map(({ path }) => path);
    expect(first).toBe('/api/models/some/model/revision/v1.0');
    for (const path of others) expect(path).toContain(COMMIT);
  });

  it('without code, pickles and second copies of the weights', async () => {
    const more = {
      ...FILES,
      'modeling_evil.py': Buffer.from('import os'),
      'pytorch_model.bin': Buffer.from('x'),
      'consolidated.safetensors': Buffer.from('x'),
      '.gitattributes': Buffer.from('x'),
    };
    const hub = await open({ files: more });
    const { folder } = await pull(hub);
    expect(Object.keys(await contents(folder)).sort()).toEqual(Object.keys(FILES).sort());
    expect(hub.seen.filter(({ path }) => /evil|pytorch|consolidated|gitattributes/.test(path))).toEqual([]);
  });

  it('from a list of several pages', async () => {
    const { folder } = await pull(await open({ pageSize: 2 }));
    expect(await contents(folder)).toEqual(digests(FILES));
  });

  it('as the holder of a token, which is shown to nobody else', async () => {
    const hub = await open({ token: 'hf_secret' });
    const options = { hub: { endpoint: hub.endpoint, token: 'hf_secret' } };
    const { folder } = await pull(hub, options);
    expect(await contents(folder)).toEqual(digests(FILES));
    expect(hub.seen.every(({ authorization }) => authorization === 'Bearer hf_secret')).toBe(true);
    expect(hub.seenByStore).toEqual([{ path: '/model.safetensors', range: undefined, authorization: undefined }]);
  });

  it('once: what is there with the right content is not fetched again', async () => {
    const hub = await open();
    const { folder } = await pull(hub);
    hub.seenByStore.length = 0;
    let last = [0, 0];
    await pull(hub, { folder, onProgress: (done, total) => (last = [done, total]) });
    expect(hub.seenByStore).toEqual([]);
    expect(last[0]).toBe(last[1]);
  });

  it('over a file that has other content', async () => {
    const hub = await open();
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'model.safetensors'), randomBytes(WEIGHTS.length));
    let last = [0, 0];
    await pull(hub, { folder, onProgress: (done, total) => (last = [done, total]) });
    expect(await contents(folder)).toEqual(digests(FILES));
    expect(last[0]).toBe(last[1]);
  });

  it('over another revision, of which nothing stays but what was not pulled', async () => {
    const older = { ...FILES, 'generation_config.json': Buffer.from('{}') };
    const { folder } = await pull(await open({ files: older }));
    await writeFile(join(folder, 'draft_tokens.json'), '[1]');
    const { 'model.safetensors': _, ...rest } = FILES;
    const shards = { 'model-00001-of-00001.safetensors': WEIGHTS, 'model.safetensors.index.json': Buffer.from('{}') };
    await pull(await open({ files: { ...rest, ...shards }, large: Object.keys(shards) }), { folder });
    expect(await contents(folder)).toEqual(digests({ ...rest, ...shards, 'draft_tokens.json': Buffer.from('[1]') }));
  });

  it('over a folder whose list of files was tampered with, and removes nothing outside', async () => {
    const hub = await open();
    const parent = await temporaryFolder();
    const outside = join(parent, 'victim.json');
    await writeFile(outside, 'x');
    const { folder } = await pull(hub, { folder: join(parent, 'model') });
    for (const list of ['{"files": [{"path": "../victim.json"}]}', 'no JSON', '[]']) {
      await writeFile(join(folder, SOURCE_FILE), list);
      await pull(hub, { folder });
      expect(await readFile(outside, 'utf8')).toBe('x');
      expect(await contents(folder)).toEqual(digests(FILES));
    }
  });

  it('in pieces when connections break, each going on where the last one ended', async () => {
    const hub = await open({ breaksAfter: [100_000, 70_000, 0] });
    let last = [0, 0];
    const { folder } = await pull(hub, { onProgress: (done, total) => (last = [done, total]) });
    expect(await contents(folder)).toEqual(digests(FILES));
    expect(hub.seenByStore.map(({ range }) => range)).toEqual([undefined, 'bytes=100000-', 'bytes=170000-', 'bytes=170000-']);
    expect(last[0]).toBe(last[1]);
  });

  it('by another process from the part that the first one left', async () => {
    const hub = await open({ breaksAfter: [100_000, 0, 0, 0] });
    const folder = await temporaryFolder();
    await expectAppError(pull(hub, { folder }), 'unavailable', /Cannot reach http:\/\/127\.0\.0\.1/);
    expect(Object.keys(await contents(folder)).join()).toMatch(/\.model\.safetensors\.[0-9a-f]{16}\.part/);
    hub.seenByStore.length = 0;
    await pull(hub, { folder });
    expect(await contents(folder)).toEqual(digests(FILES));
    expect(hub.seenByStore.map(({ range }) => range)).toEqual(['bytes=100000-']);
  });

  it('from the beginning where the server knows no ranges', async () => {
    const hub = await open({ breaksAfter: [100_000], ranges: false });
    const { folder } = await pull(hub);
    expect(await contents(folder)).toEqual(digests(FILES));
  });
});

describe('a pull that breaks off on the way to another revision', () => {
  const revision = (seed: number) => ({
    'config.json': Buffer.from(JSON.stringify({ seed })),
    'model.safetensors': safetensors({ w: f32([25_000], weights(25_000, seed)) }),
    [`only-in-${seed}.json`]: Buffer.from('{}'),
    [`only-in-${seed}.txt`]: Buffer.from('a b'),
    'tokenizer.json': Buffer.from(JSON.stringify({ tokens: [seed] })),
  });
  const older = revision(1);
  const newer = revision(2);
  const parts = async (folder: string) => (await readdir(folder)).filter((name) => name.endsWith('.part'));

  /** Breaks within the weights, for good. */
  const breaksAfter = () => [newer['config.json'].length, 50_000, 0, 0, 0];

  async function withOlder(): Promise<string> {
    const { folder } = await pull(await open({ files: older }));
    return folder;
  }

  it('leaves the folder as it was while it fetches, and goes on with all that it fetched', async () => {
    const folder = await withOlder();
    const hub = await open({ files: newer, breaksAfter: breaksAfter() });
    await expectAppError(pull(hub, { folder }), 'unavailable', /Cannot reach/);
    const left = await contents(folder);
    expect(left).toMatchObject(digests(older));
    const fetched = await parts(folder);
    expect(fetched.map((name) => name.replace(/\.[0-9a-f]{16}\.part$/, ''))).toEqual(['.config.json', '.model.safetensors']);
    expect(Object.keys(left)).toHaveLength(Object.keys(older).length + fetched.length);
    expect((await openCheckpoint(folder)).names).toEqual(['w']);
    hub.seen.length = 0;
    hub.seenByStore.length = 0;
    await pull(hub, { folder });
    expect(await contents(folder)).toEqual(digests(newer));
    expect(hub.seen.filter(({ path }) => path.endsWith('config.json'))).toEqual([]);
    expect(hub.seenByStore.map(({ range }) => range)).toEqual(['bytes=50000-']);
  });

  it('leaves nothing behind when a third revision is pulled in its place', async () => {
    const folder = await withOlder();
    await expectAppError(
      pull(await open({ files: newer, breaksAfter: breaksAfter() }), { folder }),
      'unavailable',
      /Cannot reach/,
    );
    const third = revision(3);
    await pull(await open({ files: third }), { folder });
    expect(await contents(folder)).toEqual(digests(third));
  });

  it.each([
    { title: 'that revision', next: newer },
    { title: 'the one before', next: older },
  ])('while it changes files leaves a folder that is not loaded before $title is pulled again', async ({ next }) => {
    const folder = await withOlder();
    // Nothing can take the place of a folder.
    const obstacle = join(folder, 'only-in-2.txt');
    await mkdir(join(obstacle, 'inner'), { recursive: true });
    await expect(pull(await open({ files: newer }), { folder })).rejects.toMatchObject({ syscall: 'rename' });
    // Of both: this is what must not be loaded.
    expect(await readFile(join(folder, 'config.json'))).toEqual(newer['config.json']);
    expect(await readFile(join(folder, 'tokenizer.json'))).toEqual(older['tokenizer.json']);
    await expectAppError(openCheckpoint(folder), 'invalid_checkpoint', /files of one revision .* pull it again/);
    await rmdir(join(obstacle, 'inner'));
    await rmdir(obstacle);
    await pull(await open({ files: next }), { folder });
    expect(await contents(folder)).toEqual(digests(next));
    expect(await readdir(folder)).not.toContain(UNFINISHED_PULL_FILE);
    expect((await openCheckpoint(folder)).names).toEqual(['w']);
  });
});

describe('a pull is refused', () => {
  it.each([
    { title: 'content that is not what was stated', forged: randomBytes(WEIGHTS.length), message: /sha256 digest/ },
    { title: 'more content than was stated', forged: randomBytes(WEIGHTS.length + 1), message: /300000 bytes .* got more/ },
    { title: 'less content than was stated', forged: randomBytes(1000), message: /300000 bytes .* got 1000/ },
  ])('for $title', async ({ forged, message }) => {
    const folder = await temporaryFolder();
    const hub = await open({ forged: { 'model.safetensors': forged } });
    await expectAppError(pull(hub, { folder }), 'invalid_checkpoint', message);
    expect(await readdir(folder)).not.toContain('model.safetensors');
  });

  it('for a small file with other content', async () => {
    const hub = await open({ forged: { 'config.json': Buffer.from('{"model_type": "QWEN3"}') } });
    await expectAppError(pull(hub), 'invalid_checkpoint', /config\.json with the git-blob digest/);
  });

  it('for a part that is not of this content, which is then thrown away', async () => {
    const hub = await open();
    const folder = await temporaryFolder();
    const part = join(folder, `.model.safetensors.${sha256(WEIGHTS).slice(0, 16)}.part`);
    await writeFile(part, randomBytes(1000));
    await expectAppError(pull(hub, { folder }), 'invalid_checkpoint', /digest/);
    await pull(hub, { folder });
    expect(await contents(folder)).toEqual(digests(FILES));
  });

  it.each(['../evil.json', 'a/../../evil.json', '/etc/evil.json', '..\\evil.json', 'C:evil.json', 'a\0.json'])(
    'for a name that leads out of the folder: %j',
    async (name) => {
      const hub = await open({ listed: [name] });
      await expectAppError(pull(hub), 'invalid_checkpoint', /inside the folder/);
      expect(hub.seen.filter(({ path }) => path.includes('resolve'))).toEqual([]);
    },
  );

  it.each([
    {
      title: 'pickles only',
      files: { 'config.json': Buffer.from('{}'), 'pytorch_model.bin': Buffer.from('x') },
      message: /pytorch_model\.bin/,
    },
    {
      title: 'a mask vector',
      files: { ...FILES, 'mask_embedding.pt': Buffer.from('x') },
      message: /vector in mask_embedding\.pt, which is not supported/,
    },
    { title: 'no weights', files: { 'config.json': Buffer.from('{}') }, message: /got none/ },
  ])('for a repository with $title', async ({ files, message }) => {
    await expectAppError(pull(await FakeHub.open({ files })), 'invalid_checkpoint', message);
  });

  it('for a repository that is not there', async () => {
    const repo = parseHubRepo('some/other');
    await expectAppError(pull(await open(), { repo }), 'invalid_config', /some\/other at revision main .*404/);
  });

  it.each([
    { token: null, message: /401 without a token/ },
    { token: 'hf_wrong', message: /401 with the token/ },
  ])('without access, with the token $token', async ({ token, message }) => {
    const hub = await open({ token: 'hf_secret' });
    await expectAppError(pull(hub, { hub: { endpoint: hub.endpoint, token } }), 'invalid_config', message);
  });

  it('without a network', async () => {
    const hub = { endpoint: 'http://127.0.0.1:1', token: null };
    await expectAppError(pull(await open(), { hub }), 'unavailable', /Cannot reach http:\/\/127\.0\.0\.1:1 \(.+\); connect/);
  });

  it('for a second page elsewhere, which would be shown the token', async () => {
    const hub = await open({ pageSize: 2, nextPageAt: 'http://127.0.0.1:2/next' });
    await expectAppError(pull(hub), 'unavailable', /all pages .*127\.0\.0\.1:2/);
  });

  it('when it is given up', async () => {
    await expectAppError(pull(await open(), { signal: AbortSignal.abort() }), 'aborted', /given up/);
  });
});

describe('the name of a repository', () => {
  it.each([
    { text: 'owner/name', repo: { name: 'owner/name', revision: 'main' } },
    { text: 'name', repo: { name: 'name', revision: 'main' } },
    { text: 'owner/na.me-1@refs/pr/1', repo: { name: 'owner/na.me-1', revision: 'refs/pr/1' } },
  ])('$text', ({ text, repo }) => {
    expect(parseHubRepo(text)).toEqual(repo);
  });

  it.each(['', '@main', 'a/b/c', 'a/../b', '../b', 'a/b@', 'a/b@../x', 'https://hub/a/b', 'a b'])('is not %j', (text) => {
    expect(() => parseHubRepo(text)).toThrowError(expect.objectContaining({ code: 'invalid_config' }));
  });
});

describe('the hub', () => {
  it('is the public one unless the environment names another', () => {
    expect(hubOptionsFromEnv({}).token).toBeNull();
    expect(new URL(hubOptionsFromEnv({}).endpoint).protocol).toBe('https:');
    expect(hubOptionsFromEnv({ HF_ENDPOINT: 'http://mirror:8080/', HF_TOKEN: 'hf_x' })).toEqual({
      endpoint: 'http://mirror:8080',
      token: 'hf_x',
    });
    expect(() => hubOptionsFromEnv({ HF_ENDPOINT: 'mirror' })).toThrowError(/HF_ENDPOINT/);
  });
});
