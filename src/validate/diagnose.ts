/** The whole diagnosis of a drafter: record once, change one assumption at a time, measure what is left, decide. */

import { openCheckpoint } from '../checkpoint/checkpoint.ts';
import { type DflashConfig, type ReadDflashOptions, readDflashConfig } from '../drafter/dflash/dflash-config.ts';
import type { FinalTap } from '../drafter/dflash/tapped-layers.ts';
import { decide } from './decide.ts';
import type { AcceptanceReport, Diagnosis } from './diagnosis.ts';
import { ownLabels, pooledAcceptance, type SequenceAcceptance, sequenceAcceptance } from './evidence/acceptance-walk.ts';
import {
  type AcceptanceGain,
  acceptanceGain,
  evaluateAssumption,
  forcedRatios,
  reportOf,
  servedRatios,
} from './evidence/evaluate-assumption.ts';
import { lookupDrafts } from './evidence/lookup-baseline.ts';
import { catalogueOf, searchCounterfactuals } from './evidence/search-counterfactuals.ts';
import { chanceOf, isLarge, SIGNIFICANCE } from './evidence/select-change.ts';
import { accuracyFall, conditionalAccuracy, decayPerSlot } from './evidence/slot-profile.ts';
import { confidenceBySlot, lookupRecall, overconfidence, splitCategories } from './evidence/symptoms.ts';
import { teacherAgreement } from './evidence/teacher-agreement.ts';
import { checkWeights } from './evidence/weight-checks.ts';
import { type Assumption, declaredAssumption } from './probe/assumption.ts';
import { DrafterProbe } from './probe/drafter-probe.ts';
import { maskCandidates } from './probe/mask-candidates.ts';
import type { Predictions } from './probe/predictions.ts';
import { roundToHalf } from './probe/round-to-half.ts';
import { RecordedTarget, type RecordedTargetOptions } from './recorded-target.ts';
import type { RecordedSequence } from './recording/recorded-sequence.ts';
import { ratioEstimate } from './statistics/estimate.ts';
import { multiplicationsPerRow, screeningSequences, teacherPlan } from './work-budget.ts';

export interface DiagnoseDrafterOptions {
  /** Folder. */
  readonly drafter: string;
  /** As it is served, where its config does not say; null: not known, the diagnosis begins with "pre". */
  readonly finalTap?: FinalTap | null;
  readonly onProgress?: (stage: DiagnosisStage, done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface DiagnoseOptions extends RecordedTargetOptions, DiagnoseDrafterOptions {}

export type DiagnosisStage = 'recording answers' | 'asking what if' | 'measuring';

/** Reads a config that taps the last layer and does not say on which side of the final norm, too: that can be found out. */
function readConfig(folder: string, options: ReadDflashOptions): DflashConfig {
  try {
    return readDflashConfig(folder, options);
  } catch (error) {
    try {
      return readDflashConfig(folder, { ...options, finalTap: 'pre' });
    } catch {
      throw error;
    }
  }
}

type ChangeWeights = (name: string, values: Float32Array) => void;

/** Share of negative weights of norms from which on they may be differences from one. */
const LEAST_NEGATIVE_NORMS = 0.1;
/** @throws AppError naming what cannot be loaded, or `aborted` */
export async function diagnose(options: DiagnoseOptions): Promise<Diagnosis> {
  await using recorded = await RecordedTarget.open(options);
  return await diagnoseDrafter(recorded, options);
}

/**
 * One of several drafters of a target, whose answers are recorded with the first one.
 * @throws AppError naming what cannot be loaded, or `aborted`
 */
export async function diagnoseDrafter(recorded: RecordedTarget, options: DiagnoseDrafterOptions): Promise<Diagnosis> {
  const { signal } = options;
  const { allowUnclaimed = false } = recorded.options;
  const config = readConfig(options.drafter, {
    targetLayers: recorded.facts.layers,
    finalTap: options.finalTap ?? null,
    allowUnclaimed,
  });
  const opened: Disposable[] = [];
  const openProbe = async (changeWeights?: ChangeWeights) => {
    const { runtime, weights, cacheDir } = recorded.options;
    const probe = await DrafterProbe.open({
      ...{ runtime, config, cacheDir, allowUnclaimed },
      folder: options.drafter,
      format: weights,
      target: recorded.borrowed,
      features: recorded.features,
      ...(changeWeights === undefined ? {} : { changeWeights }),
      ...(signal === undefined ? {} : { signal }),
    });
    opened.push(probe);
    return probe;
  };
  try {
    // Ahead of the answers: what cannot be loaded is told at once.
    const served = await openProbe();
    const sequences = await recorded.answers((done, total) => options.onProgress?.('recording answers', done, total), signal);
    return await measure({ recorded, options, served, openProbe, sequences });
  } finally {
    for (const disposable of opened.reverse()) disposable[Symbol.dispose]();
  }
}

interface Parts {
  readonly recorded: RecordedTarget;
  readonly options: DiagnoseDrafterOptions;
  /** The drafter as it is served. */
  readonly served: DrafterProbe;
  /** The drafter with other weights. */
  readonly openProbe: (changeWeights: ChangeWeights) => Promise<DrafterProbe>;
  readonly sequences: readonly RecordedSequence[];
}

async function measure({ recorded, options, served, openProbe, sequences }: Parts): Promise<Diagnosis> {
  const { facts: target, head, tokenizer } = recorded;
  const { config } = served;
  const { signal } = options;
  const withSignal = signal === undefined ? {} : { signal };
  const weights = await checkWeights(await openCheckpoint(options.drafter), config.taps.length);
  const declared = declaredAssumption(config, target.layers);

  const headRows = served.keptTokens?.ids.length ?? config.draftVocab;
  const declaredPredictions = await predictAll(served, sequences, declared, signal);
  const declaredAcceptance = declaredPredictions.map((predictions, i) =>
    sequenceAcceptance(predictions, ownLabels(sequences[i] as RecordedSequence)),
  );

  const screening = screeningSequences(sequences, config.blockSize, multiplicationsPerRow(config, headRows));
  const facts = {
    targetLayers: target.layers,
    targetRope: recorded.config.spec.rope,
    maskCandidates: maskCandidates(tokenizer, config.vocab, config.maskTokenId),
    tokenName: (id: number) => tokenizer.token(id) ?? 'outside the vocabulary',
  };
  const normOffset =
    weights.negativeNorms < LEAST_NEGATIVE_NORMS
      ? null
      : await askNormOffset({ served, openProbe, sequences, declared, questions: catalogueOf(declared, facts).length }, signal);
  const probe = normOffset?.helped?.probe ?? served;
  const search = await searchCounterfactuals({
    probe,
    sequences,
    screening,
    declared,
    base: normOffset?.helped?.acceptance ?? declaredAcceptance,
    facts,
    before: normOffset === null ? [] : [normOffset.p],
    onProgress: (done, total) => options.onProgress?.('asking what if', done, total),
    ...withSignal,
  });

  const { assumption, acceptance, slotShift } = search;
  const predictions =
    search.changes.length === 0 && probe === served
      ? declaredPredictions
      : await predictAll(probe, sequences, assumption, signal);
  const plan = teacherPlan(sequences, target.layers, config.taps, target.hiddenSize * target.vocabSize);
  const teacher = await teacherAgreement({
    head,
    sequences: plan.sequences.map((i) => sequences[i] as RecordedSequence),
    predictions: plan.sequences.map((i) => predictions[i] as Predictions),
    layers: plan.layers,
    hidden: target.hiddenSize,
    slotShift,
    ...withSignal,
  });
  const half = await evaluateAssumption(probe, screening, { ...assumption, tapPrecision: 'f16' }, slotShift, signal);
  const whole = await evaluateAssumption(probe, screening, assumption, slotShift, signal);
  const probes = [...search.reports, reportOf('taps in 16-bit floats', null, half.length, acceptanceGain(half, whole))];
  if (recorded.options.weights === 'f32' && weights.beyondHalf.length > 0) {
    const rounded = await openProbe((_, values) => roundToHalf(values));
    const gain = acceptanceGain(await evaluateAssumption(rounded, screening, assumption, slotShift, signal), whole);
    probes.push(reportOf('weights in 16-bit floats', null, whole.length, gain));
  }
  options.onProgress?.('measuring', 1, 3);
  const forms = [];
  for (const form of await recorded.forms(signal)) {
    const changed = await evaluateAssumption(probe, form.sequences, assumption, slotShift, signal);
    forms.push({ ...form, gain: acceptanceGain(changed, acceptance) });
  }
  options.onProgress?.('measuring', 2, 3);

  const lookups = lookupDrafts(sequences, assumption.blockSize);
  const lookupAcceptance = lookups.map((ids, i) =>
    sequenceAcceptance({ ...(predictions[i] as Predictions), ids }, ownLabels(sequences[i] as RecordedSequence)),
  );
  const recall = lookupRecall(sequences, predictions, lookups);
  const pooled = pooledAcceptance(acceptance);
  const { findings, notes } = decide({
    blockSize: assumption.blockSize,
    changes: search.changes,
    probes,
    teacher,
    forms,
    categories: splitCategories(sequences, acceptance),
    servedTau: pooled.servedTau,
    forcedTau: pooled.forcedTau,
    conditional: conditionalAccuracy(acceptance),
    accuracy: pooled.accuracy,
    decay: decayPerSlot(acceptance),
    accuracyFall: accuracyFall(acceptance),
    lookupRecall: recall,
    lookupTau: pooledAcceptance(lookupAcceptance).servedTau,
    overconfidence: overconfidence(sequences, predictions),
    normOffset: normOffset?.helped ?? null,
    negativeNorms: weights.negativeNorms,
    beyondHalf: weights.beyondHalf,
    fcNorms: weights.fcNorms,
    notFinite: weights.notFinite,
    maskTokenId: config.maskTokenId,
    eosTokenIds: target.eosTokenIds,
    tapNames: declared.taps.map((tap) => (tap.kind === 'layer' ? `layer ${tap.layer}` : 'the final norm')),
  });
  options.onProgress?.('measuring', 3, 3);
  return {
    healthy: findings.length === 0,
    findings,
    notes,
    acceptance: acceptanceReport(sequences, declaredAcceptance, declaredPredictions),
    probes,
    teacher: teacher.map(({ layer, tau }) => ({ layer, tau: tau.value })),
    promptForms: Object.fromEntries(forms.map(({ name, gain }) => [name, gain.servedTau.value])),
    fcNorms: weights.fcNorms,
    lookupRecall: recall,
    recorded: {
      prompts: sequences.length,
      tooLong: recorded.prompts.tooLong,
      tokens: sequences.reduce((sum, { tokens, answerStart }) => sum + tokens.length - answerStart, 0),
    },
  };
}

interface NormOffset {
  /** Of a gain this large by chance. */
  readonly p: number;
  /** Null: it does not gain enough, or perhaps by chance. */
  readonly helped: {
    readonly probe: DrafterProbe;
    readonly acceptance: readonly SequenceAcceptance[];
    readonly gain: AcceptanceGain;
    /** Adjusted for all other questions. */
    readonly p: number;
  } | null;
}

/**
 * Whether the drafter was trained with norms that add one to their weights, as Gemma's and Qwen3-Next's do. It is asked first,
 * as all else is measured with such norms then; so its p is adjusted as the smallest of all would be.
 */
async function askNormOffset(
  {
    served,
    openProbe,
    sequences,
    declared,
    questions,
  }: Pick<Parts, 'served' | 'openProbe' | 'sequences'> & { readonly declared: Assumption; readonly questions: number },
  signal: AbortSignal | undefined,
): Promise<NormOffset> {
  const probe = await openProbe((name, values) => {
    if (/norm\.weight$/.test(name)) for (let i = 0; i < values.length; i++) values[i]! += 1;
  });
  const base = await evaluateAssumption(served, sequences, declared, 0, signal);
  const acceptance = await evaluateAssumption(probe, sequences, declared, 0, signal);
  const gain = acceptanceGain(acceptance, base);
  const p = chanceOf(gain);
  const adjusted = Math.min(p * (1 + questions), 1);
  return { p, helped: adjusted < SIGNIFICANCE && isLarge(gain) ? { probe, acceptance, gain, p: adjusted } : null };
}

async function predictAll(
  probe: DrafterProbe,
  sequences: readonly RecordedSequence[],
  assumption: Assumption,
  signal: AbortSignal | undefined,
): Promise<readonly Predictions[]> {
  const predictions: Predictions[] = [];
  for (const sequence of sequences) {
    predictions.push(await probe.run(sequence, assumption, signal));
  }
  return predictions;
}

function acceptanceReport(
  sequences: readonly RecordedSequence[],
  acceptance: readonly SequenceAcceptance[],
  predictions: readonly Predictions[],
): AcceptanceReport {
  const pooled = pooledAcceptance(acceptance);
  const categories = [...new Set(sequences.map(({ category }) => category))];
  return {
    servedTau: ratioEstimate(servedRatios(acceptance)),
    forcedTau: ratioEstimate(forcedRatios(acceptance)),
    acceptance: pooled.acceptance,
    accuracy: pooled.accuracy,
    conditional: conditionalAccuracy(acceptance).map((share) => share ?? Number.NaN),
    confidence: confidenceBySlot(sequences, predictions),
    byCategory: Object.fromEntries(
      categories.map((category) => [
        category,
        pooledAcceptance(acceptance.filter((_, i) => sequences[i]?.category === category)).servedTau,
      ]),
    ),
  };
}
