/** From measurements to findings. */
import type { FaultCode, Finding, Note, ProbeReport } from './diagnosis.ts';
import type { AcceptanceGain } from './evidence/evaluate-assumption.ts';
import type { PromptForm } from './evidence/prompt-forms.ts';
import { type HelpfulChange, LEAST_EFFECT, SIGNIFICANCE } from './evidence/select-change.ts';
import { recommendedGamma, tauOfHealthyDecay } from './evidence/slot-profile.ts';
import { type CategorySplit, contrast } from './evidence/symptoms.ts';
import type { LayerAgreement } from './evidence/teacher-agreement.ts';
import type { Estimate } from './statistics/estimate.ts';
import { holmAdjusted } from './statistics/holm.ts';
import { median } from './statistics/median.ts';
import { upperTail } from './statistics/student-t.ts';

/** Everything measured; what is said of the drafter itself holds under the changes that helped, if any did. */
export interface Measurements {
  readonly blockSize: number;
  readonly changes: readonly HelpfulChange[];
  readonly probes: readonly ProbeReport[];
  readonly teacher: readonly LayerAgreement[];
  readonly forms: readonly (Pick<PromptForm, 'name' | 'fault'> & { readonly gain: AcceptanceGain })[];
  readonly categories: CategorySplit | null;
  readonly servedTau: number;
  readonly forcedTau: number;
  /** By slot, where enough anchors reach it. */
  readonly conditional: readonly (number | null)[];
  readonly accuracy: readonly number[];
  readonly decay: Estimate;
  readonly accuracyFall: Estimate;
  readonly lookupRecall: Estimate;
  readonly lookupTau: number;
  readonly overconfidence: Estimate;
  /** What adding one to the weights of norms gained, with an adjusted p; null: not asked, or too little. The rest was measured with it. */
  readonly normOffset: { readonly gain: AcceptanceGain; readonly p: number } | null;
  /** Share of them that are negative. */
  readonly negativeNorms: number;
  /** Tensors whose values 16-bit floats cannot hold. */
  readonly beyondHalf: readonly string[];
  readonly fcNorms: readonly number[];
  readonly notFinite: readonly string[];
  readonly maskTokenId: number;
  readonly eosTokenIds: readonly number[];
  readonly tapNames: readonly string[];
}

/** Of the tokens that a table of n-grams finds, a drafter that has learned its task misses fewer than one in ten. */
export const LEAST_RECALL = 0.9;
/** How many times as many draft tokens one group of categories must have accepted: published drafters stay near 2. */
export const LEAST_CONTRAST = 3;
/** Decay of the conditional log-odds, in units of what the recommended loss weights fall by, that is no longer healthy. */
export const STEEP_DECAY = 1.5;
/** Fall of accuracy over the block, in the same units, below which early slots had no priority in training. */
export const FLAT_FALL = 0.5;
/** Overconfidence that cross-entropy on the served text does not leave. */
export const LEAST_OVERCONFIDENCE = 0.05;

type Unranked = Omit<Finding, 'rank'>;

export function decide(m: Measurements): { readonly findings: readonly Finding[]; readonly notes: readonly Note[] } {
  const findings: Unranked[] =
    m.notFinite.length > 0
      ? [brokenWeights(m)]
      : [...normOffsetFinding(m), ...deadTapFinding(m), ...servingFindings(m), ...trainingFindings(m)];
  return {
    findings: findings.map((finding, index) => ({ ...finding, rank: index + 1 })),
    notes: notesOn(m, findings),
  };
}

function brokenWeights({ notFinite }: Measurements): Unranked {
  return {
    fault: 'weights-broken',
    confidence: 1,
    effect: null,
    evidence: [`values that are no finite numbers in ${notFinite.slice(0, 4).join(', ')} (${notFinite.length} tensors)`],
    advice: 'train from the last checkpoint before the loss became NaN, and keep weights in bfloat16 or float32',
  };
}

/** Taps whose columns of `fc` are zero: lost, or never trained from zero. */
function deadTaps({ fcNorms }: Measurements): readonly number[] {
  return fcNorms.flatMap((norm, tap) => (norm === 0 && fcNorms.some((other) => other > 0) ? [tap] : []));
}

function describeDead(m: Measurements, tap: number): string {
  return `the columns of fc that take tap ${tap} (${m.tapNames[tap]}) are all zero: whatever it holds, the drafter does not see it`;
}

function normOffsetFinding({ normOffset, negativeNorms }: Measurements): Unranked[] {
  if (normOffset === null) return [];
  return [
    {
      fault: 'norm-offset',
      confidence: confidence(normOffset.p),
      effect: normOffset.gain.servedGain.value,
      evidence: [
        `${percent(negativeNorms)} of the weights of its norms are negative, as those of no ordinary RMSNorm are`,
        describeGain('one added to each of them', normOffset.gain, normOffset.p),
      ],
      advice:
        'add 1 to the weights of all norms when the drafter is exported: it was trained with norms that multiply by 1 + weight, and DFlash ' +
        'drafters are served with norms that multiply by the weight',
    },
  ];
}

/** Certain whatever it costs, and said before what follows from it: without one tap the others are out of balance. */
function deadTapFinding(m: Measurements): Unranked[] {
  const dead = deadTaps(m);
  if (dead.length === 0) return [];
  const names = dead.map((tap) => `${tap} (${m.tapNames[tap]})`).join(' and ');
  return [
    {
      fault: 'tap-unseen',
      confidence: 1,
      effect: null,
      evidence: [...dead.map((tap) => describeDead(m, tap)), describeNorms(m.fcNorms)],
      advice:
        `look where the columns of tap ${names} were lost: compare fc.weight with the trainer's own checkpoint, and export it again if they are ` +
        'there; if they are zero there too, the tap was never fed, or fed zeros: let training capture it, and train on',
    },
  ];
}

/** Changes of serving that gain: the largest first. */
function servingFindings(m: Measurements): Unranked[] {
  const dead = deadTaps(m).length > 0;
  const changes = m.changes.filter(({ outcome }) => !dead || outcome.counterfactual.fault !== 'tap-unseen');
  const byFault = new Map<FaultCode, HelpfulChange[]>();
  for (const change of changes) {
    const { fault } = change.outcome.counterfactual;
    byFault.set(fault, [...(byFault.get(fault) ?? []), change]);
  }
  return [...byFault]
    .map(([fault, members]): Unranked => {
      const gained = members.reduce((sum, { outcome }) => sum + outcome.gain.servedGain.value, 0);
      return {
        fault,
        confidence: confidence(Math.max(...members.map(({ p }) => p))),
        effect: gained,
        evidence: members.map(({ outcome, p }) => describeGain(outcome.counterfactual.name, outcome.gain, p)),
        advice: (members.at(-1) as HelpfulChange).outcome.counterfactual.advice,
      };
    })
    .sort((a, b) => (b.effect ?? 0) - (a.effect ?? 0));
}

function describeGain(name: string, gain: AcceptanceGain, p: number): string {
  const { servedGain, servedTau, firstSlotGain } = gain;
  const before = servedTau.value - servedGain.value;
  return (
    `with ${name}, ${before.toFixed(2)} tokens per round become ${servedTau.value.toFixed(2)} ` +
    `(${signed(servedGain.value)}, 95 % interval ${interval(servedGain)}; adjusted p ${formatP(p)}); slot 1 ${signed(firstSlotGain.value, 3)}`
  );
}

/** What training did wrong: one cause, as each of them would also look like those after it. */
function trainingFindings(m: Measurements): Unranked[] {
  const finding =
    innerTeacher(m) ?? otherPromptForm(m) ?? oneCategory(m) ?? wrongData(m) ?? tooLittleTraining(m) ?? smallGamma(m);
  return finding === null ? [] : [finding];
}

function innerTeacher({ teacher, forcedTau }: Measurements): Unranked | null {
  const inner = teacher.slice(0, -1);
  const final = teacher.at(-1);
  if (final === undefined || inner.length === 0) return null;
  const adjusted = holmAdjusted(inner.map(({ advantage }) => advantage.p));
  const best = inner.reduce((kept, next) => (next.advantage.value > kept.advantage.value ? next : kept));
  const p = adjusted[inner.indexOf(best)] as number;
  if (p >= SIGNIFICANCE || best.advantage.value < LEAST_EFFECT * forcedTau) return null;
  return {
    fault: 'teacher-intermediate',
    confidence: confidence(p),
    effect: best.advantage.value,
    evidence: [
      `1 + the mean prefix that agrees is ${best.tau.value.toFixed(2)} with norm and head of layer ${best.layer}'s output, and ` +
        `${final.tau.value.toFixed(2)} with the target's own choices (${signed(best.advantage.value)}, 95 % interval ` +
        `${interval(best.advantage)}; adjusted p ${formatP(p)})`,
    ],
    advice:
      `take labels (or teacher logits) from the output of the last layer, ${final.layer}, after the final norm: training took them from ` +
      `layer ${best.layer}. A capture list that is one layer short does this, as its last entry then is a tap; no change of serving helps`,
  };
}

const FORM_ADVICE: Readonly<Record<PromptForm['fault'], string>> = {
  'no-chat-template':
    'render the training conversations with the chat template that is served, generation prompt included, and train again',
  'thinking-mode':
    'render the training conversations with the enable_thinking that is served, and train again; or serve requests as it was trained',
};

function otherPromptForm({ forms, servedTau }: Measurements): Unranked | null {
  if (forms.length === 0) return null;
  const adjusted = holmAdjusted(forms.map(({ gain }) => Math.max(gain.servedGain.p, gain.forcedGain.p)));
  const best = forms.reduce((kept, next) => (next.gain.servedGain.value > kept.gain.servedGain.value ? next : kept));
  const p = adjusted[forms.indexOf(best)] as number;
  if (p >= SIGNIFICANCE || best.gain.servedGain.value < LEAST_EFFECT * servedTau) return null;
  return {
    fault: best.fault,
    confidence: confidence(p),
    effect: best.gain.servedGain.value,
    evidence: [
      `on the same answers behind prompts written as "${best.name}" it drafts better than behind those that are served: ` +
        describeGain('them', best.gain, p),
    ],
    advice: FORM_ADVICE[best.fault],
  };
}

function oneCategory({ categories, servedTau }: Measurements): Unranked | null {
  if (categories === null || contrast(categories) < LEAST_CONTRAST || categories.goodFirstSlot < LEAST_RECALL) return null;
  const p = Math.min(categories.difference.p * categories.splits, 1);
  if (p >= SIGNIFICANCE) return null;
  return {
    fault: 'data-one-category',
    confidence: confidence(p),
    effect: categories.goodTau - servedTau,
    evidence: [
      `${categories.goodTau.toFixed(2)} tokens per round on ${categories.good.join(', ')}, ${categories.badTau.toFixed(2)} on ` +
        `${categories.bad.join(', ')}: ${contrast(categories).toFixed(0)} times as many draft tokens accepted (adjusted p ${formatP(p)})`,
    ],
    advice: `add training data of the other kinds: it has learned ${categories.good.join(', ')} only`,
  };
}

function recallIsLow(recall: Estimate): number {
  // Counted among three questions: recall, overconfidence and the shape over slots.
  const QUESTIONS = 3;
  const p = upperTail((LEAST_RECALL - recall.value) / recall.standardError, Math.max(recall.clusters - 1, 1));
  return Number.isNaN(p) ? 1 : Math.min(p * QUESTIONS, 1);
}

function describeRecall({ lookupRecall, lookupTau, servedTau }: Measurements): string {
  return (
    `of the tokens that a table of n-grams of the other answers finds, slot 1 finds ${percent(lookupRecall.value)} ` +
    `(95 % interval ${percent(lookupRecall.low)} to ${percent(lookupRecall.high)}; a trained drafter finds 90 % and more); ` +
    `drafting from that table alone gives ${lookupTau.toFixed(2)} tokens per round, this drafter ${servedTau.toFixed(2)}`
  );
}

function describeConfidence({ overconfidence }: Measurements): string {
  return (
    `its probability of its own choices is ${signed(overconfidence.value)} above the share of them that is right ` +
    `(95 % interval ${interval(overconfidence)})`
  );
}

function wrongData(m: Measurements): Unranked | null {
  const p = recallIsLow(m.lookupRecall);
  if (p >= SIGNIFICANCE || m.overconfidence.low <= 0 || m.overconfidence.value < LEAST_OVERCONFIDENCE) return null;
  return {
    fault: 'data-not-target',
    confidence: confidence(p),
    effect: null,
    evidence: [
      describeRecall(m),
      `it is sure of what is wrong, as one that was trained on other text is: ${describeConfidence(m)}`,
    ],
    advice:
      "train on answers that this target gave itself, greedily or as it is served, not on another model's or a data set's: check which " +
      'model, revision and prompt made the answers',
  };
}

function tooLittleTraining(m: Measurements): Unranked | null {
  const p = recallIsLow(m.lookupRecall);
  if (p >= SIGNIFICANCE) return null;
  const gamma = recommendedGamma(m.blockSize);
  const expected = (m.blockSize - 2) / gamma;
  const flat = m.accuracyFall.value < FLAT_FALL * expected;
  const shape =
    `its accuracy falls from ${percent(m.accuracy[0] ?? 0)} at slot 1 to ${percent(m.accuracy.at(-1) ?? 0)} at slot ${m.accuracy.length}, by ` +
    `${m.accuracyFall.value.toFixed(2)} in log-odds (95 % interval ${interval(m.accuracyFall)}), where the recommended loss weights fall by ${expected.toFixed(2)}`;
  const evidence = [describeRecall(m), `it is not overconfident, as early in training: ${describeConfidence(m)}`, shape];
  if (flat) {
    return {
      fault: 'gamma-large',
      confidence: confidence(p),
      effect: null,
      evidence,
      advice:
        `weight slot k by exp(-(k-1)/gamma) with gamma ${gamma} for blocks of ${m.blockSize}: training spent as much on the last slot as on the ` +
        'first, which decides most; and train for more steps, as such a drafter also looks when training was short',
    };
  }
  return {
    fault: 'under-trained',
    confidence: confidence(p),
    effect: null,
    evidence,
    advice: 'train for more steps (and check that the learning rate did not decay too early); every slot still learns',
  };
}

function smallGamma(m: Measurements): Unranked | null {
  const usual = 1 / recommendedGamma(m.blockSize);
  const { decay } = m;
  if (!(decay.value > STEEP_DECAY * usual && decay.low > usual)) return null;
  const first = m.conditional[0];
  if (first === null || first === undefined) return null;
  const lost = tauOfHealthyDecay(first, m.blockSize) - m.forcedTau;
  if (lost < LEAST_EFFECT * m.forcedTau) return null;
  const p = upperTail((decay.value - usual) / decay.standardError, Math.max(decay.clusters - 1, 1));
  return {
    fault: 'gamma-small',
    confidence: confidence(Math.min(3 * p, 1)),
    effect: lost,
    evidence: [
      `where all slots before are right, the chance by slot is ${m.conditional.map((c) => (c === null ? '-' : percent(c))).join(', ')}: its log-odds ` +
        `fall by ${decay.value.toFixed(2)} per slot (95 % interval ${interval(decay)}), the recommended loss weights by ${usual.toFixed(2)}`,
      `slot 1 is well learned (${describeRecall(m)})`,
    ],
    advice:
      `weight slot k by exp(-(k-1)/gamma) with gamma ${recommendedGamma(m.blockSize)} for blocks of ${m.blockSize}: later slots got next to no ` +
      'weight; until then a shorter draft costs less to verify',
  };
}

function notesOn(m: Measurements, findings: readonly Unranked[]): Note[] {
  const notes: Note[] = [];
  const norms = m.fcNorms;
  const named = findings.some(({ fault }) => fault === 'tap-unseen');
  for (const [tap, norm] of norms.entries()) {
    if (named || norm === 0) continue;
    const others = median(norms.filter((_, i) => i !== tap));
    const zeroed = m.probes.find(({ probe, fault }) => fault === 'tap-unseen' && probe.startsWith(`tap ${tap} `));
    if (norms.length < 2 || norm > others / 2 || zeroed === undefined) continue;
    if (zeroed.forcedGain.low < -LEAST_EFFECT * zeroed.forcedTau) continue;
    notes.push({
      note:
        `tap ${tap} (${m.tapNames[tap]}) is not used: its columns of fc look as they did before training, so training probably fed ` +
        `${norms.length - 1} of ${norms.length} taps`,
      evidence:
        `${describeNorms(norms)}; zeroing the tap changes ${signed(zeroed.forcedGain.value)} tokens per anchor ` +
        `(95 % interval ${interval(zeroed.forcedGain)})`,
    });
  }
  const longer = m.probes
    .filter(({ fault, servedGain, servedTau }) => {
      return fault === 'block-size' && servedGain.low > 0 && servedGain.value >= LEAST_EFFECT * (servedTau - servedGain.value);
    })
    .reduce<ProbeReport | null>(
      (best, next) => (best === null || next.servedGain.value > best.servedGain.value ? next : best),
      null,
    );
  if (longer !== null && findings.length === 0) {
    notes.push({
      note: `${longer.probe} would do a little better, if longer drafts cost little to verify: the drafter goes on beyond its block`,
      evidence: `${signed(longer.servedGain.value)} tokens per round (95 % interval ${interval(longer.servedGain)})`,
    });
  }
  for (const half of m.probes.filter(({ probe, fault }) => fault === null && probe.includes('16-bit'))) {
    if (half.servedGain.high >= -LEAST_EFFECT * (half.servedTau - half.servedGain.value)) continue;
    const tensors = half.probe.startsWith('weights') ? `; beyond their range: ${m.beyondHalf.slice(0, 4).join(', ')}` : '';
    notes.push({
      note: `it must not be served with ${half.probe} (float16): keep them in bfloat16 or float32`,
      evidence: `${signed(half.servedGain.value)} tokens per round (95 % interval ${interval(half.servedGain)})${tensors}`,
    });
  }
  if (m.eosTokenIds.includes(m.maskTokenId)) {
    notes.push({
      note: `the mask token ${m.maskTokenId} is also a stop token: loops that look for stop tokens in a block filled with masks end at once`,
      evidence: `mask_token_id ${m.maskTokenId}, stop ids ${m.eosTokenIds.join(' ')}`,
    });
  }
  return notes;
}

function describeNorms(norms: readonly number[]): string {
  return `fc column norms by tap ${norms.map((norm) => norm.toFixed(2)).join(' ')}`;
}

function confidence(p: number): number {
  return Math.min(Math.max(1 - p, 0), 0.9999);
}

function signed(value: number, digits = 2): string {
  return `${value >= 0 ? '+' : ''}${value.toFixed(digits)}`;
}

function interval({ low, high }: Estimate): string {
  return `${low.toFixed(2)} to ${high.toFixed(2)}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function formatP(p: number): string {
  return p < 0.0001 ? '< 0.0001' : p.toFixed(4);
}
