/** Beginnings of earlier sequences, kept so that later ones that begin alike need not compute them again. */
import { commonLength } from '../core/common-length.ts';
import type { TokenId } from '../core/token.ts';
import { beginLike, canBeginLike } from '../decode/begin-like.ts';
import type { Drafter, DraftState } from '../drafter/drafter.ts';
import type { SequenceCache, Target } from '../target/target.ts';
import { cacheBytes } from './cache-budget.ts';

/** A sequence that others can begin with: what the target keeps of its tokens, and what one drafter does. */
export interface PrefixSource {
  /** Those behind the cache's length do not count. */
  readonly tokens: readonly TokenId[];
  readonly cache: SequenceCache;
  readonly draft: { readonly drafter: Drafter; readonly state: DraftState } | null;
  /** Only sequences of the same salt share anything. */
  readonly salt: string | null;
}

/** The beginning of a new sequence; its owner disposes of both. */
export interface ReusedPrefix {
  readonly cache: SequenceCache;
  /** Of the drafter asked for; null without one. */
  readonly state: DraftState | null;
  readonly length: number;
}

interface Entry extends PrefixSource, Disposable {
  readonly bytes: number;
  /** Made within a prompt, for all that begin alike; others take over what a sequence left behind when it ended. */
  readonly isSnapshot: boolean;
}

interface Match {
  readonly source: PrefixSource;
  readonly length: number;
  /** Null: a sequence that still runs. */
  readonly entry: Entry | null;
}

/** Entries, however small: each has tensors of its own. */
export const MAX_PREFIXES = 32;
/** Less is computed again as fast as it is copied. */
const LEAST_TOKENS = 16;
/**
 * Within a prompt, a recurrent target's state is kept at multiples of this. Half of it is computed again on average where
 * two prompts part, and a state takes as much memory as some hundred positions.
 */
export const SNAPSHOT_POSITIONS = 256;

/**
 * The least recently used entry goes first when there is no room. A sequence that goes on where an entry ends takes it
 * over; one that shares a part of it gets a copy of that part, which costs about a hundredth of computing it.
 *
 * Target and drafter begin at the same position, so that drafts are as good as without reuse. A recurrent target knows
 * the state at the end of a sequence only: an entry serves there or not at all, and prompts leave snapshots behind on the way.
 */
export class PrefixCache implements Disposable {
  readonly #target: Target;
  readonly #maxBytes: number;
  /** Least recently used first. */
  readonly #entries: Entry[] = [];
  #bytes = 0;

  /** @param maxBytes 0: nothing is kept */
  constructor(target: Target, maxBytes: number) {
    this.#target = target;
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the entries. */
  get bytes(): number {
    return this.#bytes;
  }

  get enabled(): boolean {
    return this.#maxBytes > 0;
  }

  /**
   * The longest beginning of the tokens that is known, without the last token, which has to be computed in any case.
   * @param drafter null when there will be no drafts
   * @param running sequences of which a part may be copied
   * @returns null when nothing is known
   * @throws what the drafter throws; nothing has changed then
   */
  reuse(
    tokens: readonly TokenId[],
    salt: string | null,
    drafter: Drafter | null,
    running: readonly PrefixSource[],
  ): ReusedPrefix | null {
    if (!this.enabled) return null;
    const match = this.#longest(tokens, salt, drafter, running);
    if (match === null) return null;
    const { source, entry } = match;
    const draft = drafter === null ? null : beginLike(drafter, source, match.length);
    const length = draft?.length ?? match.length;
    const state = draft?.state ?? null;
    if (length < LEAST_TOKENS || (this.#target.recurrent !== undefined && length !== source.cache.length)) {
      state?.[Symbol.dispose]();
      return null;
    }
    if (entry !== null && !entry.isSnapshot && match.length === source.cache.length) {
      this.#forget(entry);
      entry.draft?.state[Symbol.dispose]();
      if (length < source.cache.length) source.cache.truncate(length);
      return { cache: source.cache, state, length };
    }
    const cache = this.#target.openCache();
    cache.copyFrom(source.cache, length);
    if (entry !== null) this.#touch(entry);
    return { cache, state, length };
  }

  /**
   * Keeps a sequence that has ended, if there is room for it.
   * @param source its drafter's state stays its owner's, who also keeps the cache unless this returns true
   */
  retain(source: PrefixSource): boolean {
    const length = source.cache.length;
    const entry = this.enabled && length >= LEAST_TOKENS ? this.#entryOf(source, false) : null;
    if (entry === null) return false;
    const better = this.#entries.find((other) => this.#covers(other, entry));
    if (better !== undefined || entry.bytes > this.#maxBytes) {
      if (better !== undefined) this.#touch(better);
      entry.draft?.state[Symbol.dispose]();
      return false;
    }
    for (const other of this.#entries.filter((one) => this.#covers(entry, one))) this.#drop(other);
    this.#makeRoom(entry.bytes);
    this.#add(entry);
    return true;
  }

  /** Whether a copy of a sequence as it is would be kept, and is not there yet. */
  wantsSnapshot({ tokens, cache, draft, salt }: PrefixSource): boolean {
    const { length } = cache;
    if (!this.enabled || cacheBytes(this.#target, draft?.drafter ?? null, length) > this.#maxBytes) return false;
    return !this.#entries.some(
      (entry) =>
        entry.cache.length === length &&
        entry.salt === salt &&
        (draft === null || entry.draft?.drafter === draft.drafter) &&
        commonLength(entry.tokens, tokens, length) === length,
    );
  }

  /**
   * Keeps a copy of a sequence that goes on.
   * @throws what the drafter throws; nothing has changed then
   */
  snapshot(source: PrefixSource): void {
    const { cache, draft } = source;
    this.#makeRoom(cacheBytes(this.#target, draft?.drafter ?? null, cache.length));
    const copy = this.#target.openCache();
    try {
      copy.copyFrom(cache, cache.length);
      this.#add(this.#entryOf({ ...source, cache: copy }, true));
    } catch (error) {
      copy[Symbol.dispose]();
      throw error;
    }
  }

  #makeRoom(bytes: number): void {
    while (this.#entries.length > 0 && (this.#entries.length >= MAX_PREFIXES || this.#bytes + bytes > this.#maxBytes)) {
      this.#drop(this.#entries[0] as Entry);
    }
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
  }

  /** Drops what only this drafter can use, before it is disposed of. */
  forget(drafter: Drafter): void {
    for (const entry of this.#entries.filter(({ draft }) => draft?.drafter === drafter)) this.#drop(entry);
  }

  #longest(
    tokens: readonly TokenId[],
    salt: string | null,
    drafter: Drafter | null,
    running: readonly PrefixSource[],
  ): Match | null {
    const recurrent = this.#target.recurrent !== undefined;
    const candidates = [
      ...this.#entries.map((entry) => ({ source: entry, entry })),
      ...(recurrent ? [] : running.map((source) => ({ source, entry: null }))),
    ];
    let longest: Match | null = null;
    for (const { source, entry } of candidates) {
      if (source.salt !== salt || (drafter !== null && !canBeginLike(drafter, source))) continue;
      const length = commonLength(tokens, source.tokens, Math.min(tokens.length - 1, source.cache.length));
      if (length < LEAST_TOKENS || length <= (longest?.length ?? 0)) continue;
      if (recurrent && length !== source.cache.length) continue;
      longest = { source, length, entry };
    }
    return longest;
  }

  #entryOf({ tokens, cache, draft, salt }: PrefixSource, isSnapshot: boolean): Entry {
    const length = cache.length;
    const forked = draft?.drafter.fork?.(draft.state, length);
    const kept = draft !== null && forked !== undefined ? { drafter: draft.drafter, state: forked.state } : null;
    return {
      tokens: tokens.slice(0, length),
      cache,
      draft: kept,
      salt,
      bytes: cacheBytes(this.#target, kept?.drafter ?? null, length),
      isSnapshot,
      [Symbol.dispose]() {
        kept?.state[Symbol.dispose]();
        cache[Symbol.dispose]();
      },
    };
  }

  /** Whether everything that could begin with the other could begin with this one. */
  #covers(entry: Entry, other: Entry): boolean {
    const { length } = other.tokens;
    return (
      entry.salt === other.salt &&
      (other.draft === null || entry.draft?.drafter === other.draft.drafter) &&
      (this.#target.recurrent === undefined || entry.tokens.length === length) &&
      commonLength(entry.tokens, other.tokens, length) === length
    );
  }

  #touch(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1);
    this.#entries.push(entry);
  }

  #forget(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1);
    this.#bytes -= entry.bytes;
  }

  #drop(entry: Entry): void {
    this.#forget(entry);
    entry[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    for (const entry of [...this.#entries]) this.#drop(entry);
  }
}
