/** What a diagnosis says. */
import type { Estimate } from './statistics/estimate.ts';

/** Faults by code, the worst first where several are found. */
export type FaultCode =
  /** Ids of the tapped layers are one too high or too low. */
  | 'layer-ids-off-by-one'
  /** The tapped layers are the right ones in the wrong order. */
  | 'layer-ids-order'
  /** Single ids of tapped layers are wrong. */
  | 'layer-ids'
  /** A tap does harm: its columns of `fc` were not trained on what they are fed with. */
  | 'tap-unseen'
  /** The last layer is tapped on the wrong side of the final norm. */
  | 'final-tap-norm'
  | 'mask-token'
  /** Causal or bidirectional attention in the block is not what was trained. */
  | 'causal-in-block'
  /** Context features of the anchor itself were visible in training. */
  | 'context-inclusive'
  /** The last context row before the anchor was not visible in training. */
  | 'context-short'
  | 'position-shift'
  /** Slots predict the token before or behind the one they should. */
  | 'label-shift'
  | 'block-size'
  | 'rope'
  | 'sliding-window'
  /** Labels came from the output of an inner layer. */
  | 'teacher-intermediate'
  | 'no-chat-template'
  /** Training rendered its prompts with another `enable_thinking`. */
  | 'thinking-mode'
  | 'data-one-category'
  /** Trained on answers that are not the target's own. */
  | 'data-not-target'
  | 'gamma-small'
  | 'gamma-large'
  | 'under-trained'
  /** Weights of norms are differences from one, and are served as factors. */
  | 'norm-offset'
  /** Weights that are no numbers. */
  | 'weights-broken';

export interface Finding {
  readonly fault: FaultCode;
  /** 1 is the most important. */
  readonly rank: number;
  /** 1 less the probability of such evidence without the fault, adjusted for all questions asked. */
  readonly confidence: number;
  /** Tokens per round: gained by the change of serving that undoes the fault, or an estimate of what the fault costs. */
  readonly effect: number | null;
  readonly evidence: readonly string[];
  readonly advice: string;
}

/** Something worth knowing that costs no acceptance. */
export interface Note {
  readonly note: string;
  readonly evidence: string;
}

/** One changed assumption, and what it did; 16-bit floats are tried on top of the changes that were adopted, and compared with them. */
export interface ProbeReport {
  readonly probe: string;
  readonly fault: FaultCode | null;
  /** Prompts it was run on: a probe that does nothing on some is not run on all. */
  readonly prompts: number;
  /** 1 + mean correct prefix over all anchors of these prompts. */
  readonly forcedTau: number;
  /** Tokens per round of serving on these prompts. */
  readonly servedTau: number;
  /** Change of forcedTau against the declared setting, over the same anchors. */
  readonly forcedGain: Estimate;
  /** Change of servedTau against the declared setting. */
  readonly servedGain: Estimate;
  /** Change of slot 1's accuracy. */
  readonly firstSlotGain: Estimate;
}

/** Acceptance of a drafter as declared. */
export interface AcceptanceReport {
  readonly servedTau: Estimate;
  readonly forcedTau: Estimate;
  /** By slot: share of rounds with the slot inside the answer that accepted it. */
  readonly acceptance: readonly number[];
  /** By slot: share of right predictions behind all anchors. */
  readonly accuracy: readonly number[];
  /** By slot: share of right predictions where all slots before were right. */
  readonly conditional: readonly number[];
  /** By slot: mean probability that the drafter gives its own choice. */
  readonly confidence: readonly number[];
  readonly byCategory: Readonly<Record<string, number>>;
}

export interface Diagnosis {
  /** No finding costs acceptance. */
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
  readonly acceptance: AcceptanceReport;
  readonly probes: readonly ProbeReport[];
  /** 1 + mean prefix that agrees with the logit lens of a layer, innermost first; the last is the target's own choice. */
  readonly teacher: readonly { readonly layer: number; readonly tau: number }[];
  /** Tokens per round behind the request written otherwise, by how: without the chat template, or with thinking on or off. */
  readonly promptForms: Readonly<Record<string, number>>;
  /** Frobenius norm of the columns of `fc` that take each tap. */
  readonly fcNorms: readonly number[];
  /** Share of the tokens found by a table of n-grams that slot 1 finds too. */
  readonly lookupRecall: Estimate;
  readonly recorded: {
    /** With answers of two tokens and more. */
    readonly prompts: number;
    readonly tokens: number;
    /** Ids of prompts that were left out because they fill the context. */
    readonly tooLong: readonly string[];
  };
}
