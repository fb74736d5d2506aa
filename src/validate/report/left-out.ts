const NAMED = 8;

export interface LeftOut {
  /** Ids. */
  readonly tooLong: readonly string[];
  /** Measured prompts. */
  readonly count: number;
}

/** Says which prompts were not measured; null when all were. */
export function leftOut({ tooLong, count }: LeftOut): string | null {
  if (tooLong.length === 0) return null;
  const names = `${tooLong.slice(0, NAMED).join(', ')}${tooLong.length > NAMED ? ', …' : ''}`;
  return `Left out: ${tooLong.length} of ${tooLong.length + count} prompts, which fill the context: ${names}.`;
}
