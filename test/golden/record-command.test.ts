/** `record` as a process: what it tells of its progress, and what it says of a recording that is there. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { TESTBED } from './testbed-probe.ts';

const BIN = resolve(import.meta.dirname, '../../bin/blockdraft.js');
const temporary = new TemporaryFolder();
const out = join(temporary.path, 'recording');

afterAll(() => temporary[Symbol.asyncDispose]());

function record(...words: readonly string[]) {
  const pair = ['--target', join(TESTBED, 'target'), '--drafter', join(TESTBED, 'drafter'), '--weights', 'f32'];
  const size = ['--prompts', join(TESTBED, 'prompts.jsonl'), '--limit', '2', '--max-tokens', '4', '--sequences', '2'];
  const cache = ['--cache-dir', join(temporary.path, 'weights')];
  return spawnSync(process.execPath, [BIN, 'record', ...pair, ...size, ...cache, '--out', out, ...words], { encoding: 'utf8' });
}

it('tells its progress as JSON lines where they are asked for', () => {
  const { stderr, status } = record('--progress', 'json');
  expect(status).toBe(0);
  const stages = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).progress)
    .filter(({ stage }) => stage === 'Recording');
  expect(stages.at(-1)).toMatchObject({ done: 2, total: 2 });
  expect(JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8'))).toMatchObject({ complete: true });
});

it('keeps a recording that is there', () => {
  const before = readFileSync(join(out, 'manifest.json'));
  const { stderr, status } = record();
  expect(status).toBe(2);
  expect(stderr).toMatch(/Expected an empty folder, got a recording in .*; go on with it by --resume, or choose another --out/);
  expect(readFileSync(join(out, 'manifest.json'))).toEqual(before);
});
