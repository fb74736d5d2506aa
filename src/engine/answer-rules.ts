/** From the rules of a request to what enforces them on its sequence. */
import type { LogitsProcessor } from '../sampling/logits-processor.ts';

/** Makes the processor of one sequence; null when there is nothing to enforce. */
export type MakeProcessor = () => LogitsProcessor | null;

export const NO_PROCESSOR: MakeProcessor = () => null;
