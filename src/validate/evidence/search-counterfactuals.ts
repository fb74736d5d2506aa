/** Asks every counterfactual, the promising ones with all prompts, and keeps the change that helps most until none does. */
import type { ProbeReport } from '../diagnosis.ts';
import type { Assumption } from '../probe/assumption.ts';
import type { Counterfactual } from '../probe/counterfactual.ts';
import {
  blockSizeChange,
  blockSizeChanges,
  type CatalogueFacts,
  counterfactuals,
  LONGEST_BLOCK,
} from '../probe/counterfactuals.ts';
import type { DrafterProbe } from '../probe/drafter-probe.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';
import { pairedRatioDifference } from '../statistics/estimate.ts';
import type { SequenceAcceptance } from './acceptance-walk.ts';
import { acceptanceGain, evaluateAssumption, firstSlots, forcedRatios, reportOf } from './evaluate-assumption.ts';
import { type HelpfulChange, helpfulChanges, type ProbeOutcome, selectChange, worthAllPrompts } from './select-change.ts';
import { expectedGrowth, trainedDrafts } from './slot-profile.ts';

export interface SearchOptions {
  readonly probe: DrafterProbe;
  readonly sequences: readonly RecordedSequence[];
  /** Sequences, some of them shortened, that every counterfactual is tried on. */
  readonly screening: readonly RecordedSequence[];
  readonly declared: Assumption;
  readonly base: readonly SequenceAcceptance[];
  readonly facts: CatalogueFacts;
  /** p-values of questions that were asked beside the counterfactuals; default: none. */
  readonly before?: readonly number[];
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface SearchResult {
  readonly reports: readonly ProbeReport[];
  readonly changes: readonly HelpfulChange[];
  /** With all changes that helped. */
  readonly assumption: Assumption;
  readonly slotShift: number;
  readonly acceptance: readonly SequenceAcceptance[];
}

/** A drafter with more faults of serving than this is not explained by them. */
const MOST_CHANGES = 4;
/** Evaluating a counterfactual on all prompts costs as much as trying many on a few. */
const MOST_ON_ALL_PROMPTS = 6;

/** Everything that is asked about an assumption. */
export function catalogueOf(assumption: Assumption, facts: CatalogueFacts): readonly Counterfactual[] {
  return [...counterfactuals(assumption, facts), ...blockSizeChanges(assumption)];
}

export async function searchCounterfactuals(options: SearchOptions): Promise<SearchResult> {
  const { probe, sequences, screening, signal } = options;
  const reports: ProbeReport[] = [];
  const changes: HelpfulChange[] = [];
  let assumption = options.declared;
  let acceptance = options.base;
  let slotShift = 0;
  for (let pass = 0; pass < MOST_CHANGES; pass++) {
    const catalogue = catalogueOf(assumption, options.facts);
    const baseFew = await evaluateAssumption(probe, screening, assumption, slotShift, signal);
    const screened: ProbeOutcome[] = [];
    for (const [index, counterfactual] of catalogue.entries()) {
      const result = await evaluateAssumption(
        probe,
        screening,
        counterfactual.assumption,
        counterfactual.slotShift + slotShift,
        signal,
      );
      screened.push(outcomeOf(counterfactual, result, baseFew));
      options.onProgress?.(index + 1, catalogue.length);
    }
    const chosen = worthAllPrompts(screened, MOST_ON_ALL_PROMPTS);
    const outcomes: ProbeOutcome[] = [];
    for (const outcome of screened) {
      if (!chosen.has(outcome)) {
        outcomes.push(outcome);
        continue;
      }
      const { counterfactual } = outcome;
      const result = await evaluateAssumption(
        probe,
        sequences,
        counterfactual.assumption,
        counterfactual.slotShift + slotShift,
        signal,
      );
      outcomes.push({ ...outcomeOf(counterfactual, result, acceptance), onAllPrompts: true });
    }
    if (pass === 0)
      reports.push(
        ...outcomes.map(({ counterfactual, gain, acceptance: results }) =>
          reportOf(counterfactual.name, counterfactual.fault, results.length, gain),
        ),
      );
    const selected = await trainedSize(options, assumption, slotShift, acceptance, outcomes);
    if (selected === null) break;
    changes.push(selected);
    assumption = selected.outcome.counterfactual.assumption;
    slotShift += selected.outcome.counterfactual.slotShift;
    acceptance = selected.outcome.acceptance;
  }
  return { reports, changes, assumption, slotShift, acceptance };
}

/**
 * The change that helps most; of a longer block, the size that was trained. Many drafters go on beyond it for a slot or two, so
 * that the size which gains most is too long, and when the trained one does not gain enough by itself no longer one is a fault.
 */
async function trainedSize(
  { probe, sequences, signal, before = [] }: SearchOptions,
  base: Assumption,
  slotShift: number,
  acceptance: readonly SequenceAcceptance[],
  outcomes: readonly ProbeOutcome[],
): Promise<HelpfulChange | null> {
  const helpful = helpfulChanges(outcomes, before);
  const selected = selectChange(helpful);
  const longer = selected?.outcome.counterfactual.assumption.blockSize ?? 0;
  if (selected === null || longer <= base.blockSize) return selected;
  const longest = { ...base, blockSize: Math.max(LONGEST_BLOCK, longer) };
  const drafts = trainedDrafts(await evaluateAssumption(probe, sequences, longest, slotShift, signal));
  if (drafts === null || drafts + 1 <= base.blockSize || drafts + 1 === longer) return selected;
  const counterfactual = blockSizeChange(base, drafts + 1);
  const result = await evaluateAssumption(probe, sequences, counterfactual.assumption, slotShift, signal);
  const trained = { ...outcomeOf(counterfactual, result, acceptance), onAllPrompts: true };
  const known = helpfulChanges([...outcomes, trained], before).find(({ outcome }) => outcome === trained);
  return known ?? selectChange(helpful.filter(({ outcome }) => outcome.counterfactual.assumption.blockSize <= base.blockSize));
}

function outcomeOf(
  counterfactual: Counterfactual,
  result: readonly SequenceAcceptance[],
  base: readonly SequenceAcceptance[],
): ProbeOutcome {
  const drafts = Math.min(result[0]?.right.length ?? 0, base[0]?.right.length ?? 0);
  const gain = acceptanceGain(result, base);
  const longer = (result[0]?.right.length ?? 0) > drafts;
  const shared = (sequences: readonly SequenceAcceptance[]) =>
    forcedRatios(sequences.map((sequence) => ({ ...sequence, ...firstSlots(sequence, drafts) })));
  return {
    counterfactual,
    gain,
    sharedSlotsGain: pairedRatioDifference(shared(result), shared(base)),
    newSlots: longer ? gain.forcedGain.value / Math.max(expectedGrowth(base, counterfactual.assumption.blockSize), 1e-6) : null,
    acceptance: result,
    onAllPrompts: false,
  };
}
