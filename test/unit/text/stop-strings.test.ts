import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStringMatcher } from '../../../src/text/stop-strings.ts';

function run(pieces: readonly string[], stopStrings: readonly string[], includeStopString = false) {
  const matcher = new StopStringMatcher(stopStrings, { includeStopString });
  const results = pieces.map((piece) => matcher.push(piece));
  const match = results.find((result) => result.match !== null)?.match ?? null;
  const texts = results.map((result) => result.text);
  return { texts, match, text: texts.join('') + matcher.flush() };
}

/** The definition: the shortest beginning of the text that ends in a stop string, first in the list. */
function naive(text: string, stopStrings: readonly string[], includeStopString: boolean) {
  for (let end = 1; end <= text.length; end++) {
    const stopString = stopStrings.find((candidate) => text.slice(0, end).endsWith(candidate));
    if (stopString !== undefined)
      return { text: text.slice(0, includeStopString ? end : end - stopString.length), stopString, end };
  }
  return { text, stopString: null, end: text.length };
}

describe('StopStringMatcher', () => {
  it('cuts before a stop string that spans pieces and holds back what may begin one', () => {
    const { texts, match } = run(['Hi', ' EN', 'D', ' never'], ['END']);
    expect(texts).toEqual(['Hi', ' ', '', '']);
    expect(match).toEqual({ stopString: 'END', dropped: '' });
  });

  it('cuts inside a piece and reports what follows as dropped', () => {
    const { texts, match } = run(['one\n\ntwo'], ['\n\n']);
    expect(texts).toEqual(['one']);
    expect(match).toEqual({ stopString: '\n\n', dropped: 'two' });
  });

  it('keeps the stop string when asked', () => {
    expect(run(['a ST', 'OP b'], ['STOP'], true).text).toBe('a STOP');
  });

  it('lets go of what turned out to be no stop string', () => {
    expect(run(['EN', 'ENE', 'x'], ['END']).texts).toEqual(['', 'ENEN', 'Ex']);
  });

  it('delivers held text at the end', () => {
    expect(run(['a EN'], ['END'])).toMatchObject({ text: 'a EN', match: null });
  });

  it.each([
    ['the one that ends first', ['abcd', 'bc'], 'abcd', 'bc', 'a'],
    ['the first in the list of those that end together', ['b', 'ab'], 'xab', 'b', 'xa'],
    ['the first in the list of those that end together, longer one first', ['ab', 'b'], 'xab', 'ab', 'x'],
    ['the shorter of two that begin together', ['abc', 'ab'], 'abc', 'ab', ''],
  ])('takes %s', (_, stopStrings, text, stopString, kept) => {
    for (const pieces of [[text], [...text]]) {
      const result = run(pieces, stopStrings);
      expect(result.match?.stopString).toBe(stopString);
      expect(result.text).toBe(kept);
    }
  });

  it('agrees with a search in the whole text, however it is cut', () => {
    const unit = fc.constantFrom('a', 'b', 'c', '😀');
    const stopString = fc.string({ unit, minLength: 1, maxLength: 4 });
    const pieces = fc.array(fc.string({ unit, maxLength: 5 }), { maxLength: 8 });
    fc.assert(
      fc.property(pieces, fc.array(stopString, { maxLength: 3 }), fc.boolean(), (parts, stopStrings, include) => {
        const whole = parts.join('');
        const expected = naive(whole, stopStrings, include);
        const { texts, text, match } = run(parts, stopStrings, include);
        expect(text).toBe(expected.text);
        expect(match?.stopString ?? null).toBe(expected.stopString);
        // All that a piece may deliver is delivered with it: only the beginning of a stop string is held.
        parts.forEach((_, index) => {
          const seen = parts.slice(0, index + 1).join('');
          if (seen.length >= expected.end && expected.stopString !== null) return;
          const held = seen.slice(texts.slice(0, index + 1).join('').length);
          expect(held === '' || stopStrings.some((candidate) => candidate.startsWith(held))).toBe(true);
        });
      }),
      { numRuns: 3000 },
    );
  });

  it('passes over stop strings in text that is not searched, and finds one that ends behind it', () => {
    const matcher = new StopStringMatcher(['END', 'N'], { includeStopString: false });
    expect([matcher.pass('an END'), matcher.pass(' E'), matcher.pass('N')]).toEqual(['an END', ' ', '']);
    expect(matcher.push('D')).toEqual({ text: '', match: { stopString: 'END', dropped: '' } });
    expect(matcher.pass('x')).toBe('');
    const other = new StopStringMatcher(['END', 'N'], { includeStopString: false });
    expect([other.pass('EN'), other.push('x').text, other.push('N').match?.stopString]).toEqual(['', 'ENx', 'N']);
  });

  it('does nothing without stop strings', () => {
    expect(run(['a', 'b'], []).texts).toEqual(['a', 'b']);
  });

  it('refuses an empty stop string', () => {
    expect(() => new StopStringMatcher(['x', ''], { includeStopString: false })).toThrow(
      expect.objectContaining({ code: 'invalid_request', details: { param: 'stop' } }),
    );
  });
});
