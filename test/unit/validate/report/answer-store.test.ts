import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AnswerStore, readAnswers } from '../../../../src/validate/measure/answer-store.ts';
import { forced, round, served } from './measured-answers.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'blockdraft-answers-'));
  file = join(folder, 'deep', 'answers.jsonl');
});

afterEach(() => rmSync(folder, { recursive: true }));

const CONDITIONS = { target: 'abc', seed: 1 };
const ANSWER = served({ rounds: [round({ draft: [1, 2], accepted: 1 })] });

describe('kept answers', () => {
  it('are there again when a measurement goes on', () => {
    const first = AnswerStore.open(file, CONDITIONS, false);
    first.add(ANSWER);
    first.add(forced());
    const second = AnswerStore.open(file, CONDITIONS, true);
    expect(second.served(0)).toEqual([ANSWER]);
    expect(second.forced(0)).toEqual([forced()]);
    expect(second.has('served', 'a', 0)).toBe(true);
    expect(second.has('served', 'a', 0.5)).toBe(false);
    expect(second.has('forced', 'b', 0)).toBe(false);
  });

  it('are replaced without --resume', () => {
    AnswerStore.open(file, CONDITIONS, false).add(ANSWER);
    expect(AnswerStore.open(file, CONDITIONS, false).served(0)).toEqual([]);
    expect(readAnswers(file)).toEqual([]);
  });

  it('are refused under other conditions', () => {
    AnswerStore.open(file, CONDITIONS, false).add(ANSWER);
    expect(() => AnswerStore.open(file, { ...CONDITIONS, seed: 2 }, true)).toThrow(/same models and settings.*another --out/);
  });

  it('survive a line that was not written to its end, and nothing else', () => {
    AnswerStore.open(file, CONDITIONS, false).add(ANSWER);
    appendFileSync(file, '{"pass":"served","id":"torn');
    expect(readAnswers(file)).toEqual([ANSWER]);
    appendFileSync(file, '\n');
    expect(() => readAnswers(file)).toThrow(/line 3 of/);
  });

  it('go on behind a torn line', () => {
    AnswerStore.open(file, CONDITIONS, false).add(ANSWER);
    appendFileSync(file, '{"pass":"served","id":"torn');
    AnswerStore.open(file, CONDITIONS, true).add(forced());
    expect(readAnswers(file)).toEqual([ANSWER, forced()]);
    expect(readFileSync(file, 'utf8')).not.toContain('torn');
  });

  it('are only in memory without a file', () => {
    const store = AnswerStore.open(null, CONDITIONS, false);
    store.add(ANSWER);
    expect(store.served(0)).toEqual([ANSWER]);
  });
});
