const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * The first key that a JSON object has twice at its top level, or null. `JSON.parse` keeps the last one
 * without a word.
 *
 * @param text valid JSON of an object
 */
export function duplicateKey(text: string): string | null {
  const seen = new Set<string>();
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) depth--;
    else if (code === QUOTE) {
      const start = i;
      for (i++; text.charCodeAt(i) !== QUOTE; i++) if (text.charCodeAt(i) === BACKSLASH) i++;
      if (depth !== 1 || !isKey(text, i + 1)) continue;
      const key = String(JSON.parse(text.slice(start, i + 1)));
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return null;
}

/** Whether the string that ended before `index` is followed by a colon. */
function isKey(text: string, index: number): boolean {
  let at = index;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === COLON;
}
