import { describe, expect, it, onTestFinished } from 'vitest';
import type { TokenId } from '../../../src/core/token.ts';
import type { Drafter, DraftState } from '../../../src/drafter/drafter.ts';
import { MAX_PREFIXES, PrefixCache, type PrefixSource, type ReusedPrefix } from '../../../src/engine/prefix-cache.ts';
import type { Target } from '../../../src/target/target.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { ScriptedTarget } from '../../support/scripted-target.ts';

const VOCAB = 50;
const BYTES = 10;

/** Ids that count up from a start, so that texts of different starts share nothing. */
const text = (start: number, length: number): TokenId[] => Array.from({ length }, (_, i) => (start + i) % VOCAB);

function setUp(maxBytes = 1e6) {
  const target = new ScriptedTarget({
    vocabSize: VOCAB,
    nextLogits: hashedLogits({ vocabSize: VOCAB, seed: 1, memory: 4 }),
    maxCaches: 200,
    cacheBytesPerPosition: BYTES,
  });
  return { target, ...withPrefixes(target, maxBytes) };
}

function withPrefixes(target: Target & { readonly openCaches: number }, maxBytes: number) {
  const prefixes = new PrefixCache(target, maxBytes);
  const reused: ReusedPrefix[] = [];
  onTestFinished(() => {
    for (const { cache } of reused) cache[Symbol.dispose]();
    prefixes[Symbol.dispose]();
    expect(target.openCaches).toBe(0);
  });
  const computed = async (tokens: readonly TokenId[], more: Partial<PrefixSource> = {}): Promise<PrefixSource> => {
    const cache = target.openCache();
    for (let at = 0; at < tokens.length; at += 64) {
      const piece = tokens.slice(at, at + 64);
      await target.step([{ cache, tokens: piece, logitsFrom: piece.length }]);
    }
    return { tokens, cache, draft: null, salt: null, ...more };
  };
  const retained = async (tokens: readonly TokenId[], more: Partial<PrefixSource> = {}): Promise<boolean> => {
    const source = await computed(tokens, more);
    const kept = prefixes.retain(source);
    if (!kept) source.cache[Symbol.dispose]();
    return kept;
  };
  const lookUp = (
    tokens: readonly TokenId[],
    {
      salt = null,
      drafter = null,
      running = [],
    }: { salt?: string | null; drafter?: Drafter | null; running?: PrefixSource[] } = {},
  ): number => {
    const found = prefixes.reuse(tokens, salt, drafter, running);
    if (found === null) return 0;
    reused.push(found);
    expect((found.cache as unknown as { tokens: TokenId[] }).tokens).toEqual(tokens.slice(0, found.length));
    return found.length;
  };
  return { prefixes, computed, retained, lookUp };
}

/** Has taps and forks its states, of which it has taken in all but the last two rows. */
class TappingDrafter implements Drafter {
  readonly kind = 'tapping';
  readonly maxDraftTokens = 4;
  readonly taps = [0];
  readonly bytesPerPosition = 5;
  readonly lengths = new Map<DraftState, number>();
  openStates = 0;

  open(): DraftState {
    return this.#state(0);
  }

  fork(state: DraftState, length: number) {
    const kept = Math.min(length, this.lengths.get(state)!);
    return { state: this.#state(kept), length: kept };
  }

  /** A state that has seen a sequence of this length. */
  seen(length: number): DraftState {
    return this.#state(length - 2);
  }

  async propose(): Promise<[]> {
    return [];
  }

  #state(length: number): DraftState {
    this.openStates++;
    const state: DraftState = {
      observe: () => undefined,
      rewind: () => undefined,
      [Symbol.dispose]: () => {
        this.openStates--;
      },
    };
    this.lengths.set(state, length);
    return state;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

describe('the beginning of a sequence', () => {
  it('is what it has in common with an earlier one, and never all of it', async () => {
    const { retained, lookUp } = setUp();
    await retained(text(0, 40));
    expect(lookUp([...text(0, 30), 49, 49])).toBe(30);
    expect(lookUp(text(0, 40))).toBe(39);
    expect(lookUp(text(0, 20))).toBe(19);
    expect(lookUp([49, ...text(0, 40)])).toBe(0);
  });

  it('is the longest that there is, of ended and of running sequences', async () => {
    const { retained, computed, lookUp } = setUp();
    await retained(text(0, 20));
    await retained([...text(0, 30), 7]);
    expect(lookUp([...text(0, 30), 8])).toBe(30);
    const running = await computed(text(0, 45));
    expect(lookUp(text(0, 50), { running: [running] })).toBe(45);
    running.cache[Symbol.dispose]();
  });

  it('of a few tokens is not worth it', async () => {
    const { retained, lookUp } = setUp();
    expect(await retained(text(0, 15))).toBe(false);
    await retained(text(0, 40));
    expect(lookUp([...text(0, 15), 49, 49])).toBe(0);
    expect(lookUp([...text(0, 16), 49, 49])).toBe(16);
  });

  it('is shared only where the salts are equal', async () => {
    const { retained, lookUp } = setUp();
    await retained(text(0, 40), { salt: 'a' });
    expect([lookUp(text(0, 40)), lookUp(text(0, 40), { salt: 'b' })]).toEqual([0, 0]);
    expect(lookUp(text(0, 40), { salt: 'a' })).toBe(39);
  });

  it('can be had again by others when it was copied, and goes to the one who takes the whole sequence on', async () => {
    const { prefixes, target, retained, lookUp } = setUp();
    await retained(text(0, 40));
    expect([lookUp(text(0, 30)), lookUp(text(0, 30))]).toEqual([29, 29]);
    const before = target.openCaches;
    expect(lookUp(text(0, 60))).toBe(40);
    expect([target.openCaches, prefixes.bytes]).toEqual([before, 0]);
    expect(lookUp(text(0, 60))).toBe(0);
  });

  it('is unknown when nothing may be kept', async () => {
    const { retained, lookUp, computed } = setUp(0);
    expect(await retained(text(0, 40))).toBe(false);
    const running = await computed(text(0, 40));
    expect(lookUp(text(0, 40), { running: [running] })).toBe(0);
    running.cache[Symbol.dispose]();
  });
});

describe('sequences that are kept', () => {
  /** 40 positions are 3 pages of 16, and one for what lies on both sides of an edge. */
  const ENTRY = 4 * 16 * BYTES;

  it('give way, the least recently used first', async () => {
    const { prefixes, retained, lookUp } = setUp(2 * ENTRY);
    await retained(text(0, 40));
    await retained(text(10, 40));
    expect(prefixes.bytes).toBe(2 * ENTRY);
    expect(lookUp(text(0, 30))).toBe(29);
    await retained(text(20, 40));
    expect(prefixes.bytes).toBe(2 * ENTRY);
    expect([lookUp(text(10, 30)), lookUp(text(0, 30)), lookUp(text(20, 30))]).toEqual([0, 29, 29]);
  });

  it('are not those that are larger than all the memory', async () => {
    const { retained, lookUp } = setUp(ENTRY);
    await retained(text(0, 40));
    expect(await retained(text(10, 60))).toBe(false);
    expect(lookUp(text(0, 30))).toBe(29);
  });

  it('are not twice the same: a longer one takes the place of its beginning', async () => {
    const { prefixes, retained, lookUp } = setUp();
    await retained(text(0, 20));
    await retained(text(0, 40));
    expect(prefixes.bytes).toBe(ENTRY);
    expect(await retained(text(0, 30))).toBe(false);
    expect(prefixes.bytes).toBe(ENTRY);
    expect(lookUp(text(0, 39))).toBe(38);
  });

  it('are no more than so many, however small', async () => {
    const { target, retained } = setUp();
    for (let i = 0; i < MAX_PREFIXES + 5; i++) await retained([i, ...text(0, 20)]);
    expect(target.openCaches).toBe(MAX_PREFIXES);
  });
});

describe('a drafter that needs more than tokens', () => {
  it('begins where the target does: as far as it has taken in', async () => {
    const { prefixes, target, computed } = setUp();
    const drafter = new TappingDrafter();
    using state = drafter.seen(40);
    const source = await computed(text(0, 40), { draft: { drafter, state } });
    expect(prefixes.retain(source)).toBe(true);
    expect(prefixes.bytes).toBe(4 * 16 * (BYTES + drafter.bytesPerPosition));
    const whole = prefixes.reuse(text(0, 60), null, drafter, []);
    expect([whole?.length, whole?.cache.length, drafter.lengths.get(whole!.state!)]).toEqual([38, 38, 38]);
    whole?.cache[Symbol.dispose]();
    whole?.state?.[Symbol.dispose]();
    expect([target.openCaches, drafter.openStates]).toEqual([0, 1]);
  });

  it('gets nothing of a sequence that it did not see, which others can have', async () => {
    const { prefixes, retained, lookUp } = setUp();
    await retained(text(0, 40));
    expect(prefixes.reuse(text(0, 60), null, new TappingDrafter(), [])).toBeNull();
    expect(lookUp(text(0, 60))).toBe(40);
  });

  it('keeps its own longer sequence from being thrown out for one that it did not see', async () => {
    const { prefixes, computed, retained } = setUp();
    const drafter = new TappingDrafter();
    using state = drafter.seen(40);
    prefixes.retain(await computed(text(0, 40), { draft: { drafter, state } }));
    await retained(text(0, 50));
    const found = prefixes.reuse(text(0, 50), null, drafter, []);
    expect(found?.length).toBe(38);
    found?.cache[Symbol.dispose]();
    found?.state?.[Symbol.dispose]();
  });

  it('leaves nothing open when it fails', async () => {
    const { prefixes, target, computed } = setUp();
    const drafter = new TappingDrafter();
    using state = drafter.seen(40);
    prefixes.retain(await computed(text(0, 40), { draft: { drafter, state } }));
    drafter.fork = () => {
      throw new Error('no fork today');
    };
    expect(() => prefixes.reuse(text(0, 60), null, drafter, [])).toThrow('no fork today');
    expect(target.openCaches).toBe(1);
  });
});

describe('a target with recurrent layers', () => {
  class Recurrent extends ScriptedTarget {
    readonly recurrent = { bytesPerSequence: 1000 };
  }
  const setUpRecurrent = () => {
    const target = new Recurrent({
      vocabSize: VOCAB,
      nextLogits: hashedLogits({ vocabSize: VOCAB, seed: 1, memory: 4 }),
      maxCaches: 20,
      cacheBytesPerPosition: BYTES,
    });
    return withPrefixes(target, 1e6);
  };

  it('goes on where a sequence ended, and nowhere else', async () => {
    const { prefixes, retained, lookUp, computed } = setUpRecurrent();
    await retained(text(0, 40));
    expect(prefixes.bytes).toBe(4 * 16 * BYTES + 1000);
    const running = await computed(text(20, 40));
    expect(lookUp([...text(0, 30), 49, 49])).toBe(0);
    expect(lookUp(text(0, 40))).toBe(0);
    expect(lookUp(text(20, 60), { running: [running] })).toBe(0);
    expect(lookUp(text(0, 60))).toBe(40);
    running.cache[Symbol.dispose]();
  });
});
