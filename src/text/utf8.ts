/** Where a sequence of bytes can be cut without splitting a UTF-8 character. */

/**
 * How many bytes at the end begin a character without finishing it: 0 to 3. Bytes that no continuation could make valid are not
 * counted (Unicode Standard, table 3-7), so a decoder replaces what is counted by exactly one U+FFFD if nothing follows.
 */
export function incompleteSuffixLength(bytes: Uint8Array): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const byte = bytes[bytes.length - length]!;
    if (byte >= 0x80 && byte < 0xc0) continue;
    return length < sequenceLength(byte) && (length === 1 || canFollow(byte, bytes[bytes.length - length + 1]!)) ? length : 0;
  }
  return 0;
}

/** Length of the character that the byte begins; 0 when none does. */
function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

/** Whether the continuation byte may come second: it must not make an overlong form, a surrogate or more than U+10FFFF. */
function canFollow(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second < 0x90;
  return true;
}
