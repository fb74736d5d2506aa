/** A draft that nobody uses: a drafter that cannot make one shows it here, and not in somebody's request. */
import { checkProposals } from '../decode/check-proposals.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { OwnedTensor } from '../onnx/tensor.ts';
import type { TargetFacts } from '../target/target.ts';
import type { ServedDrafter } from './served-drafter.ts';

export interface TrialContext extends Pick<TargetFacts, 'hiddenSize' | 'vocabSize'> {
  readonly runtime: OnnxRuntime;
}

/**
 * Shows it a row of zeros and asks for a draft, which also loads what the first one needs.
 * @throws whatever it throws; Error when what it proposes cannot be used
 */
export async function tryDrafter(
  { drafter, draftTokens: budget }: ServedDrafter,
  { runtime, hiddenSize, vocabSize }: TrialContext,
  signal: AbortSignal,
): Promise<void> {
  const taps = drafter.taps.map((tap) => [tap, OwnedTensor.allocate(runtime, 'f32', [1, hiddenSize])] as const);
  try {
    for (const [, row] of taps) row.data.fill(0);
    using state = drafter.open();
    state.observe({ position: 0, tokens: [0], taps: new Map(taps), firstRow: 0 });
    const asked = [{ state, anchor: 0, budget }];
    const proposals = await drafter.propose(asked, signal);
    checkProposals(drafter, asked, proposals, vocabSize);
    if (proposals[0]?.probabilities?.some(Number.isNaN)) {
      throw new Error(`Expected probabilities from ${drafter.kind}, got NaN; its weights may hold NaN`);
    }
  } finally {
    for (const [, row] of taps) row[Symbol.dispose]();
  }
}
