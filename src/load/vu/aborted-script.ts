/** The script has ended the whole test. */
export class AbortedScript extends Error {
  override readonly name = 'AbortedScript';
}
