const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** How many arrays and objects of a JSON text lie inside one another at most; read without recursion, before anything is made of it. */
export function jsonDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (isString) {
      if (unit === BACKSLASH) i += 1;
      else if (unit === QUOTE) isString = false;
    } else if (unit === QUOTE) {
      isString = true;
    } else if (unit === 0x5b || unit === 0x7b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (unit === 0x5d || unit === 0x7d) {
      depth -= 1;
    }
  }
  return deepest;
}
