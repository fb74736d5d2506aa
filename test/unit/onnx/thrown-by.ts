/** No line breaks, and no full stop with more behind it. */
export const ONE_SENTENCE = /^(?!.*\.\s+\p{Lu})[^\n]+$/u;

/** What a call throws or rejects with. */
export async function thrownBy(call: () => unknown): Promise<Error> {
  try {
    await call();
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
  throw new Error('Expected the call to fail, and it did not');
}
