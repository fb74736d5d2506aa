/** Regular expressions for the text between a JSON string's quotes. */

/** What JSON writes with a backslash. */
const NEVER_PLAIN = '"\\\\\\x00-\\x1f';

/** What the classes that a letter stands for may stand for between quotes. */
const CLASSES: Readonly<Record<string, string>> = {
  D: `[^0-9${NEVER_PLAIN}]`,
  W: `[^a-zA-Z0-9_${NEVER_PLAIN}]`,
  S: `[^ ${NEVER_PLAIN}]`,
  s: '[ ]',
};

/** Escapes that may be in a set: `\d`, `\w`, and punctuation that means itself. */
const SAFE_IN_SET = /^[dw\-[\]^./$+*?(){}|,:;@#!%&=<>~'`_ ]$/;

/**
 * The same pattern without texts that JSON would have to write with a backslash: the grammar engine puts patterns between
 * quotes as they are, where a `.` would end the string early.
 * @returns null when the pattern names such characters, so that nobody can say what it allows
 */
export function quotedPattern(pattern: string): string | null {
  let quoted = '';
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    if (character === '\\') {
      const escaped = pattern[++at];
      if (escaped === undefined || 'nrtfv0xuc"\\'.includes(escaped)) return null;
      quoted += CLASSES[escaped] ?? `\\${escaped}`;
    } else if (character === '[') {
      const end = endOfSet(pattern, at);
      const set = end === null ? null : quotedSet(pattern.slice(at + 1, end));
      if (end === null || set === null) return null;
      quoted += set;
      at = end;
    } else if (character === '.') quoted += `[^${NEVER_PLAIN}]`;
    else if (character === '"' || character < ' ') return null;
    else quoted += character;
  }
  return quoted;
}

function endOfSet(pattern: string, start: number): number | null {
  for (let at = start + 1; at < pattern.length; at++) {
    if (pattern[at] === '\\') at++;
    else if (pattern[at] === ']') return at;
  }
  return null;
}

/** @param inner what is between the brackets */
function quotedSet(inner: string): string | null {
  const negated = inner.startsWith('^');
  for (let at = negated ? 1 : 0; at < inner.length; at++) {
    const character = inner[at]!;
    if (character === '\\' && !SAFE_IN_SET.test(inner[++at] ?? '')) return null;
    if (negated) continue;
    if (character === '"' || character < ' ') return null;
    const last = inner[at + 2];
    if (inner[at + 1] === '-' && last !== undefined && ['"', '\\'].some((one) => inner[at]! <= one && one <= last)) return null;
  }
  return negated ? `[${inner}${NEVER_PLAIN}]` : `[${inner}]`;
}
