/** What is recorded is what a drafter sees when it is served. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSafetensorsHeader } from '../../src/checkpoint/safetensors.ts';
import { GREEDY } from '../../src/core/sampling-params.ts';
import { FIXED_LENGTH } from '../../src/decode/draft-length/fixed-length.ts';
import { decodeRound } from '../../src/decode/round.ts';
import { Sequence } from '../../src/decode/sequence.ts';
import type { CommittedRows, Drafter, DraftState } from '../../src/drafter/drafter.ts';
import { CPU } from '../../src/onnx/device.ts';
import { EndTokens } from '../../src/validate/measure/end-tokens.ts';
import { type RecordOptions, record } from '../../src/validate/record/record.ts';
import { readPrompts } from '../../src/validate/recording/read-prompts.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { testRuntime } from '../support/runtime.ts';
import { DflashPair } from './open-dflash.ts';

const FOLDER = join(import.meta.dirname, 'fixtures', 'testbed');
const TARGET = join(FOLDER, 'target');
const PROMPTS = readPrompts(join(FOLDER, 'prompts.jsonl'), { limit: 12, seed: 0 });
const MAX_TOKENS = 40;
const HIDDEN = 128;

const temporary = new TemporaryFolder();

function options(out: string, changes: Partial<RecordOptions> = {}): RecordOptions {
  return {
    runtime: testRuntime(),
    device: CPU,
    target: TARGET,
    weights: 'f32',
    prompts: PROMPTS,
    turns: 'all',
    taps: [0, 2, 3, 4, 5],
    lastHiddenState: true,
    precision: 'f32',
    maxTokens: MAX_TOKENS,
    temperature: 0,
    seed: 0,
    sequences: 8,
    maxRows: 64,
    maxContext: null,
    shardRows: 300,
    out: join(temporary.path, out),
    resume: false,
    cacheDir: join(temporary.path, 'weights'),
    ...changes,
  };
}

interface Recorded {
  readonly tokens: readonly number[];
  readonly promptLength: number;
  readonly rows: ReadonlyMap<string, Float32Array>;
}

/** Sequences of a recording in f32, by id. */
async function readRecording(folder: string): Promise<ReadonlyMap<string, Recorded>> {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const sequences = new Map<string, Recorded>();
  for (const { file, ids } of manifest.shards as { file: string; ids: string[] }[]) {
    const bytes = readFileSync(join(folder, file));
    const { tensors } = await readSafetensorsHeader(join(folder, file));
    const buffer = (name: string) => {
      const { offset, byteLength } = tensors.get(name)!;
      return bytes.buffer.slice(bytes.byteOffset + offset, bytes.byteOffset + offset + byteLength);
    };
    const offsets = [...new BigInt64Array(buffer('sequence_offsets'))].map(Number);
    const prompts = new Int32Array(buffer('prompt_lengths'));
    const tokens = new Int32Array(buffer('input_ids'));
    const floats = [...tensors.keys()].filter((name) => name.startsWith('tap.') || name === 'last_hidden_state');
    const values = new Map(floats.map((name) => [name, new Float32Array(buffer(name))]));
    for (const [i, id] of ids.entries()) {
      const [begin, end] = [offsets[i]!, offsets[i + 1]!];
      sequences.set(id, {
        tokens: [...tokens.subarray(begin, end)],
        promptLength: prompts[i]!,
        rows: new Map([...values].map(([name, all]) => [name, all.subarray(begin * HIDDEN, end * HIDDEN)])),
      });
    }
  }
  return sequences;
}

/** Passes everything on to a drafter, and keeps the rows that it was shown. */
class ShownRows implements Drafter {
  readonly kind = 'shown';
  readonly taps: readonly number[];
  readonly maxDraftTokens: number;
  readonly #inner: Drafter;

  constructor(inner: Drafter) {
    this.#inner = inner;
    this.taps = inner.taps;
    this.maxDraftTokens = inner.maxDraftTokens;
  }

  open(): DraftState & { readonly shown: Map<number, number[]>; readonly inner: DraftState } {
    const inner = this.#inner.open();
    const shown = new Map(this.taps.map((tap): [number, number[]] => [tap, []]));
    return {
      inner,
      shown,
      observe(rows: CommittedRows) {
        for (const [tap, values] of shown) {
          const first = rows.firstRow * HIDDEN;
          values.push(...rows.taps.get(tap)!.data.subarray(first, first + rows.tokens.length * HIDDEN));
        }
        inner.observe(rows);
      },
      rewind: (length) => inner.rewind(length),
      [Symbol.dispose]: () => inner[Symbol.dispose](),
    };
  }

  propose(requests: Parameters<Drafter['propose']>[0], signal: AbortSignal) {
    return this.#inner.propose(
      requests.map((request) => ({ ...request, state: (request.state as ReturnType<ShownRows['open']>).inner })),
      signal,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

let whole: ReadonlyMap<string, Recorded>;

beforeAll(async () => {
  const { manifest } = await record(options('whole'));
  expect(manifest.complete).toBe(true);
  expect(manifest.shards.length).toBeGreaterThan(1);
  whole = await readRecording(join(temporary.path, 'whole'));
}, 120_000);

afterAll(() => temporary[Symbol.asyncDispose]());

describe('a recording', () => {
  it('has the taps that a drafter is shown in speculative decoding, bit for bit', async () => {
    await using pair = await DflashPair.open(join(FOLDER, 'drafter'), TARGET);
    const drafter = new ShownRows(pair.drafter);
    const { facts } = pair.target;
    const served = [...whole].slice(0, pair.target.maxSequences).map(([id, { tokens, promptLength }]) => {
      const state = drafter.open();
      const sequence = new Sequence({
        promptTokens: tokens.slice(0, promptLength),
        sampling: GREEDY,
        stopRule: new EndTokens(facts.eosTokenIds),
        maxTokens: MAX_TOKENS,
        limitedBy: 'max-tokens',
        cache: pair.target.openCache(),
        drafting: { drafter, state, limit: 7, lengths: FIXED_LENGTH },
      });
      return { id, state, sequence };
    });
    for (;;) {
      const going = served.map(({ sequence }) => sequence).filter(({ ending }) => ending === null);
      if (going.length === 0) break;
      await decodeRound(pair.target, going, new AbortController().signal);
    }
    let compared = 0;
    for (const { id, state, sequence } of served) {
      const recorded = whole.get(id)!;
      expect(recorded.tokens, id).toEqual(sequence.tokens);
      for (const [tap, values] of state.shown) {
        const own = recorded.rows.get(`tap.${tap}`)!;
        expect(values.length, id).toBeGreaterThan(0);
        expect(
          Buffer.from(Float32Array.from(values).buffer).equals(Buffer.from(own.slice(0, values.length).buffer)),
          `${id}, tap ${tap}`,
        ).toBe(true);
        compared += values.length;
      }
      sequence[Symbol.dispose]();
    }
    expect(compared).toBeGreaterThan(50_000);
  });

  it('has a row for every token, and rows of the final norm that differ from all taps', () => {
    for (const [id, { tokens, rows }] of whole) {
      expect([...rows.keys()], id).toEqual(['tap.0', 'tap.2', 'tap.3', 'tap.4', 'tap.5', 'last_hidden_state']);
      for (const values of rows.values()) {
        expect(values).toHaveLength(tokens.length * HIDDEN);
        expect(values.subarray(-HIDDEN).some((value) => value !== 0)).toBe(true);
      }
    }
  });

  it('has rows that do not depend on what was decoded beside them', async () => {
    await record(options('alone', { sequences: 1, maxRows: 32, prompts: PROMPTS.slice(0, 3) }));
    const alone = await readRecording(join(temporary.path, 'alone'));
    for (const [id, recorded] of alone) expect(recorded, id).toEqual(whole.get(id));
  });

  it('is the same when it was interrupted and went on', async () => {
    const interrupt = new AbortController();
    const settings = { sequences: 2, shardRows: 100 };
    const { manifest } = await record(
      options('parts', { ...settings, signal: interrupt.signal, onProgress: (done) => done === 5 && interrupt.abort() }),
    );
    expect(manifest.complete).toBe(false);
    const { manifest: complete, sequences } = await record(options('parts', { ...settings, resume: true }));
    expect(complete.complete).toBe(true);
    expect(sequences).toBeLessThan(PROMPTS.length);
    const parts = await readRecording(join(temporary.path, 'parts'));
    expect([...parts.keys()].sort()).toEqual([...whole.keys()].sort());
    for (const [id, recorded] of parts) expect(recorded, id).toEqual(whole.get(id));
  });

  it('goes on with the same prompts and turns only', async () => {
    const [first, second] = PROMPTS.slice(0, 2) as [(typeof PROMPTS)[number], (typeof PROMPTS)[number]];
    await record(options('few', { prompts: [first, second] }));
    const other = { ...first, messages: second.messages };
    const resumed = { prompts: [other, second], resume: true } as const;
    await expect(record(options('few', resumed))).rejects.toThrow(new RegExp(`another one under the id ${first.id}`));
    await expect(record(options('few', { ...resumed, turns: 'last' }))).rejects.toThrow(/same target and settings/);
    const { sequences } = await record(options('few', { prompts: PROMPTS.slice(0, 3), resume: true }));
    expect(sequences).toBe(1);
  });

  it('lists what fills the context', async () => {
    const content = 'once more '.repeat(100);
    const long = { id: 'endless', category: 'x', messages: [{ role: 'user', content }] };
    const { manifest, sequences } = await record(options('long', { prompts: [long, PROMPTS[0]!], maxContext: 128 }));
    expect(manifest).toMatchObject({ complete: true, skipped: ['endless'] });
    expect(sequences).toBe(1);
  });

  it('answers each turn of a conversation behind its own answers', async () => {
    const [first, second] = PROMPTS as readonly [(typeof PROMPTS)[number], (typeof PROMPTS)[number]];
    const messages = [...first.messages, { role: 'assistant', content: 'not this' }, ...second.messages];
    await record(options('turns', { prompts: [{ id: 'c', category: 'x', messages }] }));
    const turns = await readRecording(join(temporary.path, 'turns'));
    expect([...turns.keys()]).toEqual(['c#1', 'c#2']);
    const [one, two] = [turns.get('c#1')!, turns.get('c#2')!];
    expect(one.tokens).toEqual(whole.get(first.id)?.tokens);
    // The second prompt begins with the first answer as it was given.
    expect(two.tokens.slice(0, one.tokens.length)).toEqual(one.tokens);
  });

  it('refuses prompts that it could not tell apart', async () => {
    await expect(record(options('turn', { prompts: [{ ...PROMPTS[0]!, id: 'a#2' }] }))).rejects.toThrow(/without "#".*a#2/);
  });
});
