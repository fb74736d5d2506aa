import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { incompleteSuffixLength } from '../../../src/text/utf8.ts';

const decode = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

describe('incompleteSuffixLength', () => {
  it.each([
    ['nothing', [], 0],
    ['ASCII', [0x41], 0],
    ['a whole character', [0xe4, 0xb8, 0x96], 0],
    ['two of three bytes', [0x41, 0xe4, 0xb8], 2],
    ['three of four bytes', [0xf0, 0x9f, 0x98], 3],
    ['a lead byte', [0xc3], 1],
    ['continuation bytes alone', [0x80, 0x80], 0],
    ['an overlong form', [0xe0, 0x80], 0],
    ['a surrogate', [0xed, 0xa0], 0],
    ['more than U+10FFFF', [0xf4, 0x90], 0],
    ['a byte that never leads', [0xf5], 0],
  ])('is right for %s', (_, bytes, length) => {
    expect(incompleteSuffixLength(Uint8Array.from(bytes))).toBe(length);
  });

  it('cuts where a streaming decoder does', () => {
    const byte = fc.oneof(
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(0xe0, 0xed, 0xf0, 0xf4, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 8 }), (values) => {
        const bytes = Uint8Array.from(values);
        const length = incompleteSuffixLength(bytes);
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        expect(decode(bytes.subarray(0, bytes.length - length))).toBe(decoder.decode(bytes, { stream: true }));
        expect(length > 0 ? '\uFFFD' : '').toBe(decoder.decode());
      }),
      { numRuns: 3000 },
    );
  });
});
