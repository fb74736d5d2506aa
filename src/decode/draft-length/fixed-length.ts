import type { LengthPolicy } from './length-policy.ts';

/** Drafts are as long as was asked for, and verified whole. */
export const FIXED_LENGTH: LengthPolicy = {
  ask: (sequences) => sequences.map(({ budget }) => ({ tokens: budget, reason: null })),
  trim: (drafts) => drafts.map(({ proposal }) => ({ tokens: proposal.tokens.length, reason: null })),
  learn: () => undefined,
  learnStep: () => undefined,
};
