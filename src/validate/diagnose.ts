/** The whole diagnosis of a drafter: record once, change one assumption at a time, measure what is left, decide. */

import { openCheckpoint } from '../checkpoint/checkpoint.ts';
import { type DflashConfig, readDflashConfig } from '../drafter/dflash/dflash-config.ts';
import { borrowTarget } from '../engine/borrow-target.ts';
import { CPU } from '../onnx/device.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { finalNormWeight } from '../target/decoder-spec.ts';
import { normFactors } from '../target/derived-weights.ts';
import { readModelConfig } from '../target/hf-config.ts';
import { type LoadedTarget, loadTarget } from '../target/load-target.ts';
import { type ChatTemplate, loadChatTemplate } from '../text/chat-template.ts';
import { loadTokenizer, type Tokenizer } from '../text/tokenizer.ts';
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
import { promptForms, recordForm } from './evidence/prompt-forms.ts';
import { searchCounterfactuals } from './evidence/search-counterfactuals.ts';
import { SIGNIFICANCE } from './evidence/select-change.ts';
import { accuracyFall, conditionalAccuracy, decayPerSlot } from './evidence/slot-profile.ts';
import { confidenceBySlot, lookupRecall, overconfidence, splitCategories } from './evidence/symptoms.ts';
import { teacherAgreement } from './evidence/teacher-agreement.ts';
import { checkWeights } from './evidence/weight-checks.ts';
import { type Assumption, declaredAssumption } from './probe/assumption.ts';
import { DrafterProbe } from './probe/drafter-probe.ts';
import { FeatureSource } from './probe/feature-source.ts';
import { maskCandidates } from './probe/mask-candidates.ts';
import type { Predictions } from './probe/predictions.ts';
import { roundToHalf } from './probe/round-to-half.ts';
import { TargetHead } from './probe/target-head.ts';
import type { DiagnosisPrompt } from './recording/prompt.ts';
import { recordAnswers } from './recording/record-answers.ts';
import type { RecordedSequence } from './recording/recorded-sequence.ts';
import { ratioEstimate } from './statistics/estimate.ts';
import { multiplicationsPerRow, screeningSequences, teacherPlan } from './work-budget.ts';

export interface DiagnoseOptions {
  readonly runtime: OnnxRuntime;
  /** Folders. */
  readonly target: string;
  readonly drafter: string;
  readonly prompts: readonly DiagnosisPrompt[];
  readonly weights: 'f32' | 'int8';
  /** Longest answer recorded. */
  readonly maxTokens: number;
  /** Null: the user's cache folder. */
  readonly cacheDir: string | null;
  readonly onProgress?: (stage: DiagnosisStage, done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export type DiagnosisStage = 'recording answers' | 'asking what if' | 'measuring';

/** Reads a config that taps the last layer and does not say on which side of the final norm, too: that can be found out. */
function readConfig(folder: string, targetLayers: number): DflashConfig {
  try {
    return readDflashConfig(folder, { targetLayers });
  } catch (error) {
    try {
      return readDflashConfig(folder, { targetLayers, finalTap: 'pre' });
    } catch {
      throw error;
    }
  }
}

type ChangeWeights = (name: string, values: Float32Array) => void;

/** Share of negative weights of norms from which on they may be differences from one. */
const LEAST_NEGATIVE_NORMS = 0.1;
/** Sequences decoded together while recording. */
const SEQUENCES_AT_ONCE = 8;
const ROWS_AT_ONCE = 256;

/** @throws AppError naming what cannot be loaded, or `aborted` */
export async function diagnose(options: DiagnoseOptions): Promise<Diagnosis> {
  const { runtime, signal } = options;
  const modelConfig = readModelConfig(options.target);
  const config = readConfig(options.drafter, modelConfig.spec.layers.length);
  const [tokenizer, template] = await Promise.all([loadTokenizer(options.target), loadChatTemplate(options.target)]);
  const rendered = options.prompts.map((prompt) => ({
    prompt,
    promptTokens: tokenizer.encode(template.render(prompt.messages, { addGenerationPrompt: true }), {
      addSpecialTokens: false,
    }),
  }));
  const longest = Math.max(...rendered.map(({ promptTokens }) => promptTokens.length));
  const withSignal = signal === undefined ? {} : { signal };
  const loaded = await loadTarget({
    runtime,
    device: CPU,
    folder: options.target,
    config: modelConfig,
    format: options.weights,
    maxContext: Math.min(longest + options.maxTokens, modelConfig.spec.maxPositions),
    maxSequences: SEQUENCES_AT_ONCE,
    maxRows: ROWS_AT_ONCE,
    taps: Array.from({ length: modelConfig.spec.layers.length }, (_, layer) => layer),
    cacheDir: options.cacheDir,
    ...withSignal,
  });
  const { target } = loaded;
  const borrowed = borrowTarget(loaded);
  const opened: Disposable[] = [];
  try {
    const { spec } = modelConfig;
    const norm = { weight: normFactors(spec, finalNormWeight(spec)), epsilon: spec.normEpsilon };
    const head = await TargetHead.open(runtime, borrowed, norm);
    opened.push(head);
    const probeOptions = {
      runtime,
      folder: options.drafter,
      config,
      format: options.weights,
      target: borrowed,
      features: new FeatureSource(head, config.targetHidden),
      cacheDir: options.cacheDir,
      ...withSignal,
    };
    const openProbe = async (changeWeights?: ChangeWeights) => {
      const probe = await DrafterProbe.open({ ...probeOptions, ...(changeWeights === undefined ? {} : { changeWeights }) });
      opened.push(probe);
      return probe;
    };
    const probe = await openProbe();
    const recorded = await recordAnswers({
      target,
      maxTokens: options.maxTokens,
      sequences: rendered.map(({ prompt, promptTokens }) => ({ ...prompt, promptTokens, answer: null })),
      onProgress: (done, total) => options.onProgress?.('recording answers', done, total),
      ...withSignal,
    });
    const kept = recorded.filter(({ tokens, answerStart }) => tokens.length - answerStart >= 2);
    return await measure({ options, loaded, served: probe, openProbe, head, tokenizer, template, sequences: kept });
  } finally {
    for (const disposable of opened.reverse()) disposable[Symbol.dispose]();
    await target[Symbol.asyncDispose]();
  }
}

interface Parts {
  readonly options: DiagnoseOptions;
  readonly loaded: LoadedTarget;
  /** The drafter as it is served. */
  readonly served: DrafterProbe;
  /** The drafter with other weights. */
  readonly openProbe: (changeWeights: ChangeWeights) => Promise<DrafterProbe>;
  readonly head: TargetHead;
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  readonly sequences: readonly RecordedSequence[];
}

async function measure({
  options,
  loaded,
  served,
  openProbe,
  head,
  tokenizer,
  template,
  sequences,
}: Parts): Promise<Diagnosis> {
  const { target } = loaded;
  const { config } = served;
  const { signal } = options;
  const withSignal = signal === undefined ? {} : { signal };
  const modelConfig = readModelConfig(options.target);
  const weights = await checkWeights(await openCheckpoint(options.drafter), config.taps.length);
  const declared = declaredAssumption(config, target.facts.layers);

  const headRows = served.keptTokens?.ids.length ?? config.draftVocab;
  const declaredPredictions = await predictAll(served, sequences, declared, signal);
  const declaredAcceptance = declaredPredictions.map((predictions, i) =>
    sequenceAcceptance(predictions, ownLabels(sequences[i] as RecordedSequence)),
  );

  const screening = screeningSequences(sequences, config.blockSize, multiplicationsPerRow(config, headRows));
  const normOffset =
    weights.negativeNorms < LEAST_NEGATIVE_NORMS
      ? null
      : await askNormOffset({ served, openProbe, sequences, declared }, signal);
  const probe = normOffset?.probe ?? served;
  const search = await searchCounterfactuals({
    probe,
    sequences,
    screening,
    declared,
    base: normOffset?.acceptance ?? declaredAcceptance,
    facts: {
      targetLayers: target.facts.layers,
      targetRope: modelConfig.spec.rope,
      maskCandidates: maskCandidates(tokenizer, config.vocab, config.maskTokenId),
      tokenName: (id) => tokenizer.token(id) ?? 'outside the vocabulary',
    },
    onProgress: (done, total) => options.onProgress?.('asking what if', done, total),
    ...withSignal,
  });

  const { assumption, acceptance, slotShift } = search;
  const predictions =
    search.changes.length === 0 && normOffset === null
      ? declaredPredictions
      : await predictAll(probe, sequences, assumption, signal);
  const plan = teacherPlan(sequences, target.facts.layers, config.taps, target.facts.hiddenSize * target.facts.vocabSize);
  const teacher = await teacherAgreement({
    head,
    sequences: plan.sequences.map((i) => sequences[i] as RecordedSequence),
    predictions: plan.sequences.map((i) => predictions[i] as Predictions),
    layers: plan.layers,
    hidden: target.facts.hiddenSize,
    slotShift,
    ...withSignal,
  });
  const half = await evaluateAssumption(probe, screening, { ...assumption, tapPrecision: 'f16' }, slotShift, signal);
  const whole = await evaluateAssumption(probe, screening, assumption, slotShift, signal);
  const probes = [...search.reports, reportOf('taps in 16-bit floats', null, half.length, acceptanceGain(half, whole))];
  if (options.weights === 'f32' && weights.beyondHalf.length > 0) {
    const rounded = await openProbe((_, values) => roundToHalf(values));
    const gain = acceptanceGain(await evaluateAssumption(rounded, screening, assumption, slotShift, signal), whole);
    probes.push(reportOf('weights in 16-bit floats', null, whole.length, gain));
  }
  options.onProgress?.('measuring', 1, 3);
  const promptOf = new Map(options.prompts.map((prompt) => [prompt.id, prompt]));
  const prompts = sequences.map(({ id }) => promptOf.get(id) as DiagnosisPrompt);
  const forms = [];
  for (const form of promptForms(template, prompts[0]?.messages ?? [])) {
    const rewritten = await recordForm(form, { target, tokenizer, prompts, sequences, ...withSignal });
    if (rewritten === null) continue;
    const changed = await evaluateAssumption(probe, rewritten, assumption, slotShift, signal);
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
    normOffset: normOffset?.gain ?? null,
    negativeNorms: weights.negativeNorms,
    beyondHalf: weights.beyondHalf,
    fcNorms: weights.fcNorms,
    notFinite: weights.notFinite,
    maskTokenId: config.maskTokenId,
    eosTokenIds: target.facts.eosTokenIds,
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
      tokens: sequences.reduce((sum, { tokens, answerStart }) => sum + tokens.length - answerStart, 0),
    },
  };
}

/** Whether the drafter was trained with norms that add one to their weights, as Gemma's and Qwen3-Next's do. */
async function askNormOffset(
  {
    served,
    openProbe,
    sequences,
    declared,
  }: Pick<Parts, 'served' | 'openProbe' | 'sequences'> & { readonly declared: Assumption },
  signal: AbortSignal | undefined,
): Promise<{
  readonly probe: DrafterProbe;
  readonly acceptance: readonly SequenceAcceptance[];
  readonly gain: AcceptanceGain;
} | null> {
  const probe = await openProbe((name, values) => {
    if (/norm\.weight$/.test(name)) for (let i = 0; i < values.length; i++) values[i]! += 1;
  });
  const base = await evaluateAssumption(served, sequences, declared, 0, signal);
  const acceptance = await evaluateAssumption(probe, sequences, declared, 0, signal);
  const gain = acceptanceGain(acceptance, base);
  const helps = Math.max(gain.forcedGain.p, gain.servedGain.p) < SIGNIFICANCE && gain.servedGain.value > 0;
  return helps ? { probe, acceptance, gain } : null;
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
