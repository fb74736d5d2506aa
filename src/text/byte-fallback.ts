/** How sentencepiece vocabularies write text: a space is ▁, and a byte that no token has is written in hexadecimal. */

const BYTE_TOKEN = /^<0x([\dA-F]{2})>$/i;

/** The bytes that a vocabulary entry stands for within a text, at whose beginning the decoder may drop a space. */
export function byteFallbackBytes(piece: string): Uint8Array {
  const byte = BYTE_TOKEN.exec(piece);
  return byte === null ? new TextEncoder().encode(piece.replaceAll('▁', ' ')) : Uint8Array.of(Number.parseInt(byte[1]!, 16));
}
