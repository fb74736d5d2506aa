/** Runs a drafter under an assumption over many sequences, and compares two runs. */
import type { FaultCode, ProbeReport } from '../diagnosis.ts';
import type { Assumption } from '../probe/assumption.ts';
import type { DrafterProbe } from '../probe/drafter-probe.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';
import { type Estimate, pairedRatioDifference, type Ratio, ratioEstimate } from '../statistics/estimate.ts';
import { ownLabels, type SequenceAcceptance, sequenceAcceptance } from './acceptance-walk.ts';

/** Acceptance by sequence. */
export async function evaluateAssumption(
  probe: DrafterProbe,
  sequences: readonly RecordedSequence[],
  assumption: Assumption,
  slotShift: number,
  signal?: AbortSignal,
): Promise<readonly SequenceAcceptance[]> {
  const results: SequenceAcceptance[] = [];
  for (const sequence of sequences) {
    const predictions = await probe.run(sequence, assumption, signal);
    results.push(sequenceAcceptance(predictions, ownLabels(sequence), slotShift));
  }
  return results;
}

export function forcedRatios(sequences: readonly SequenceAcceptance[]): readonly Ratio[] {
  return sequences.map(({ prefixes }) => ({
    dividend: prefixes.reduce((sum, prefix) => sum + prefix + 1, 0),
    divisor: prefixes.length,
  }));
}

export function servedRatios(sequences: readonly SequenceAcceptance[]): readonly Ratio[] {
  return sequences.map(({ emitted, cycles }) => ({ dividend: emitted, divisor: cycles }));
}

export function firstSlotRatios(sequences: readonly SequenceAcceptance[]): readonly Ratio[] {
  return sequences.map(({ right, labelled }) => ({ dividend: right[0] ?? 0, divisor: labelled[0] ?? 0 }));
}

export interface AcceptanceGain {
  readonly forcedTau: Estimate;
  readonly servedTau: Estimate;
  readonly forcedGain: Estimate;
  readonly servedGain: Estimate;
  readonly firstSlotGain: Estimate;
}

/** @param changed @param base of the same sequences in the same order */
export function acceptanceGain(changed: readonly SequenceAcceptance[], base: readonly SequenceAcceptance[]): AcceptanceGain {
  return {
    forcedTau: ratioEstimate(forcedRatios(changed)),
    servedTau: ratioEstimate(servedRatios(changed)),
    forcedGain: pairedRatioDifference(forcedRatios(changed), forcedRatios(base)),
    servedGain: pairedRatioDifference(servedRatios(changed), servedRatios(base)),
    firstSlotGain: pairedRatioDifference(firstSlotRatios(changed), firstSlotRatios(base)),
  };
}

export function reportOf(probe: string, fault: FaultCode | null, prompts: number, gain: AcceptanceGain): ProbeReport {
  const { forcedTau, servedTau, ...gains } = gain;
  return { probe, fault, prompts, forcedTau: forcedTau.value, servedTau: servedTau.value, ...gains };
}

/** The first slots only, as if blocks were shorter. */
export function firstSlots(sequence: SequenceAcceptance, drafts: number): Pick<SequenceAcceptance, 'prefixes'> {
  return { prefixes: sequence.prefixes.map((prefix) => Math.min(prefix, drafts)) };
}
