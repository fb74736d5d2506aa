import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSafetensorsHeader } from '../../../../src/checkpoint/safetensors.ts';
import { Conversation } from '../../../../src/validate/record/conversation.ts';
import { encodeRows } from '../../../../src/validate/record/encode-rows.ts';
import type { Conditions } from '../../../../src/validate/record/manifest-schema.ts';
import { type FinishedSequence, readManifest, ShardWriter } from '../../../../src/validate/record/shard-writer.ts';

const message = (role: string, content: string) => ({ role, content });
const GIVEN = [
  message('system', 's'),
  message('user', 'one'),
  message('assistant', 'theirs'),
  message('user', 'two'),
  message('assistant', 'theirs too'),
];

describe('a conversation with answers of one’s own', () => {
  it('answers every user turn behind its own answers, not the given ones', () => {
    const conversation = new Conversation({ id: 'c', category: 'x', messages: GIVEN }, 'all');
    expect(conversation.turnId).toBe('c#1');
    expect(conversation.next()).toEqual([message('system', 's'), message('user', 'one')]);
    conversation.answer('mine');
    expect(conversation.turnId).toBe('c#2');
    expect(conversation.next()).toEqual([
      message('system', 's'),
      message('user', 'one'),
      message('assistant', 'mine'),
      message('user', 'two'),
    ]);
    conversation.answer('mine too');
    expect(conversation.next()).toBeNull();
  });

  it('answers the last user turn behind what is given', () => {
    const conversation = new Conversation({ id: 'c', category: 'x', messages: GIVEN }, 'last');
    expect(conversation.turnId).toBe('c');
    expect(conversation.next()).toEqual(GIVEN.slice(0, 4));
  });

  it.each(['all', 'last'] as const)('needs a user’s message (%s)', (turns) => {
    expect(() => new Conversation({ id: 'c', category: 'x', messages: [message('system', 's')] }, turns)).toThrow(
      /message of a user in c/,
    );
  });
});

describe('rows as they are stored', () => {
  it('are copies of the same bits in f32', () => {
    const values = Float32Array.from([1, Math.PI, -0]);
    const bytes = encodeRows(values, 'f32');
    values[0] = 7;
    expect([...new Float32Array(bytes.slice().buffer)]).toEqual([1, Math.fround(Math.PI), -0]);
  });

  it('are rounded to nearest in bf16 and f16', () => {
    expect([...new Uint16Array(encodeRows(Float32Array.from([1, 1.00390625]), 'bf16').slice().buffer)]).toEqual([
      0x3f80, 0x3f80,
    ]);
    expect([...new Uint16Array(encodeRows(Float32Array.from([1, 65504]), 'f16').slice().buffer)]).toEqual([0x3c00, 0x7bff]);
  });
});

describe('shards', () => {
  const conditions: Conditions = {
    target: { folder: 't', sha256: 'a', weights: 'f32' },
    tokenizerSha256: 'b',
    chatTemplate: '',
    chatTemplateKwargs: {},
    turns: 'all',
    eosTokenIds: [2],
    layers: 4,
    hiddenSize: 2,
    vocabSize: 8,
    taps: [1],
    lastHiddenState: true,
    precision: 'f32',
    sampling: { temperature: 0, seed: 0, maxTokens: 4 },
  };
  const TENSORS = ['tap.1', 'last_hidden_state'];
  const sequence = (id: string, length: number): FinishedSequence => ({
    id,
    tokens: Array.from({ length }, (_, i) => i),
    prompt: `of ${id}`,
    promptLength: 1,
    chunks: new Map(TENSORS.map((name) => [name, [encodeRows(new Float32Array(2 * length), 'f32')]])),
  });
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'blockdraft-shards-'));
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  it('are written when they are full, and hold what belongs together', async () => {
    const writer = ShardWriter.open(folder, TENSORS, 5, conditions, false);
    writer.add([sequence('a', 3)]);
    expect(readManifest(folder)).toBeNull();
    writer.add([sequence('b#1', 2), sequence('b#2', 4)]);
    await writer.settle();
    writer.add([sequence('c', 2)]);
    await writer.finish(true);
    const manifest = readManifest(folder)!;
    expect(manifest.complete).toBe(true);
    expect(manifest.shards.map(({ file, rows, ids }) => [file, rows, ids])).toEqual([
      ['shard-00000.safetensors', 9, ['a', 'b#1', 'b#2']],
      ['shard-00001.safetensors', 2, ['c']],
    ]);
    const { tensors } = await readSafetensorsHeader(join(folder, 'shard-00000.safetensors'));
    expect(tensors.get('sequence_offsets')?.shape).toEqual([4]);
    expect(tensors.get('tap.1')?.shape).toEqual([9, 2]);
  });

  it('go on under the same conditions, and only on purpose', async () => {
    const first = ShardWriter.open(folder, TENSORS, 1, conditions, false);
    first.add([sequence('a', 3)]);
    await first.finish(false);
    expect(() => ShardWriter.open(folder, TENSORS, 1, conditions, false)).toThrow(/--resume/);
    expect(() => ShardWriter.open(folder, TENSORS, 1, { ...conditions, precision: 'bf16' }, true)).toThrow(/another --out/);
    const second = ShardWriter.open(folder, TENSORS, 1, conditions, true);
    expect([...second.recorded()]).toEqual([['a', 'of a']]);
    second.skip('long');
    second.add([sequence('b', 2)]);
    await second.finish(true);
    expect(readManifest(folder)?.skipped).toEqual(['long']);
    expect(readManifest(folder)?.shards.map(({ file }) => file)).toEqual([
      'shard-00000.safetensors',
      'shard-00001.safetensors',
    ]);
  });

  it('tell of a disk that cannot be written', async () => {
    const writer = ShardWriter.open(folder, TENSORS, 1, conditions, false);
    rmSync(folder, { recursive: true });
    writer.add([sequence('a', 3)]);
    await expect(writer.settle()).rejects.toThrow(/ENOENT/);
    expect(() => readManifest(folder)).not.toThrow();
    folder = mkdtempSync(join(tmpdir(), 'blockdraft-shards-'));
  });
});
