import type { GrammarLimits } from '../../src/grammar/grammar-limits.ts';

/** For tests that are not about time, on machines that are busy with others. */
export const PATIENT: Partial<GrammarLimits> = { compileMs: 60_000, sharedCompileMs: 60_000, stepMs: 60_000 };
