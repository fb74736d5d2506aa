/** The alphabet in which byte-level BPE writes bytes: one printable character for each of the 256 (GPT-2's `bytes_to_unicode`). */

const BYTE_OF_CHARACTER = alphabet();

function alphabet(): ReadonlyMap<string, number> {
  const printable = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const bytes = new Map<string, number>();
  let shifted = 0x100;
  for (let byte = 0; byte < 0x100; byte++) bytes.set(String.fromCharCode(printable(byte) ? byte : shifted++), byte);
  return bytes;
}

/**
 * The bytes that a vocabulary entry stands for: one a character, or the entry's own UTF-8 when it has a character outside the
 * alphabet, as added tokens may. The rule of the ByteLevel decoder in Hugging Face's tokenizers.
 */
export function byteLevelBytes(piece: string): Uint8Array {
  const bytes = new Uint8Array(piece.length);
  for (let index = 0; index < piece.length; index++) {
    const byte = BYTE_OF_CHARACTER.get(piece[index]!);
    if (byte === undefined) return new TextEncoder().encode(piece);
    bytes[index] = byte;
  }
  return bytes;
}
