/** Loads XGrammar's WebAssembly build. For a worker: the engine computes where it is called. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

export type XGrammar = typeof import('@mlc-ai/web-xgrammar');

export interface LoadedXGrammar {
  readonly xgrammar: XGrammar;
  /** What the engine has printed last: an error is printed, and aborts the engine without words. */
  lastWords(): string;
  /** Memory that the engine has taken. */
  memoryBytes(): number;
}

/**
 * The package calls itself an ES module and is none: as one it looks for `require` and exports to nobody. So it is run as
 * the CommonJS it is, with a console that keeps what it says.
 * @param memoryBytes that the engine may take; an allocation beyond it fails
 */
export function loadXGrammar(memoryBytes: number): LoadedXGrammar {
  const require = createRequire(import.meta.url);
  const path = require.resolve('@mlc-ai/web-xgrammar');
  let words = '';
  const memory = limitMemory(memoryBytes, () => {
    words = `it needs more than ${Math.floor(memoryBytes / 2 ** 20)} MiB of memory`;
  });
  const listen = (...parts: unknown[]) => {
    const text = parts.join(' ');
    if (text.startsWith('[FATAL]')) words = text;
  };
  const exports = {};
  const silent = { log: listen, warn: listen, error: listen };
  const run = new Function('exports', 'module', 'require', '__filename', 'console', readFileSync(path, 'utf8'));
  run(exports, { exports }, require, path, silent);
  return { xgrammar: exports as XGrammar, lastWords: () => words, memoryBytes: memory };
}

/** What is used of a part of the language that Node's types leave to browsers. */
interface GrowingMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/**
 * The build itself stops at 2 GiB only.
 * @returns tells how much the memory that grew last has
 */
function limitMemory(memoryBytes: number, onRefused: () => void): () => number {
  const { prototype } = (globalThis as unknown as { WebAssembly: { Memory: { prototype: GrowingMemory } } }).WebAssembly.Memory;
  const { grow } = prototype;
  let bytes = 0;
  prototype.grow = function (this: GrowingMemory, pages: number) {
    const wanted = this.buffer.byteLength + pages * 65_536;
    if (wanted > memoryBytes) {
      onRefused();
      throw new RangeError('no memory left');
    }
    bytes = wanted;
    return grow.call(this, pages);
  };
  return () => bytes;
}
