/** One round of speculative decoding over several sequences: propose, verify, accept, commit. */
import { AbortedError } from '../core/aborted-error.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { TokenLogprobs } from '../core/token-logprobs.ts';
import { tokenLogprobs } from '../sampling/token-logprobs.ts';
import type { StepResult, Target } from '../target/target.ts';
import { type Acceptance, accept } from './accept.ts';
import { acceptSynthetic } from './accept-synthetic.ts';
import { breather } from './breather.ts';
import { chooseToken } from './choose-token.ts';
import { lookAhead } from './look-ahead.ts';
import { planRows, type RowPlan } from './plan-rows.ts';
import { promptLogprobs } from './prompt-logprobs.ts';
import { type Draft, propose } from './propose.ts';
import { RoundFailedError } from './round-failed-error.ts';
import type { Sequence } from './sequence.ts';
import type { ShadowRound } from './shadow-draft.ts';
import { traceRound } from './trace-round.ts';

/** What a round did to one sequence. */
export interface SequenceOutcome {
  readonly sequence: Sequence;
  /** Rows of the prompt that were computed. */
  readonly promptRows: number;
  readonly emitted: readonly TokenId[];
  /** One for each emitted token; null unless they were asked for. */
  readonly logprobs: readonly TokenLogprobs[] | null;
  /** Null while the prompt is being computed: its last rows choose the first token, and nothing is verified. */
  readonly round: RoundRecord | null;
  /** Why fewer draft tokens were verified than the sequence may have; null when they were not. */
  readonly shortBy: ShortDraftReason | null;
  /** Shadow drafts of this round or earlier ones that are decided now. */
  readonly shadows: readonly ShadowRound[];
  /** What makes it impossible to go on with this sequence, and with no other; what it has emitted holds. */
  readonly failure: { readonly error: unknown } | null;
}

export interface RoundOutcome {
  readonly sequences: readonly SequenceOutcome[];
  readonly draftMs: number;
  readonly verifyMs: number;
  /** Choosing tokens, and telling of them. */
  readonly commitMs: number;
}

/**
 * Moves every sequence on that the step has room for. When the step fails or is aborted, no sequence has changed but
 * for drafters that were dropped.
 * @param sequences none of which has ended
 * @param maxPromptRows for prompts in a step that decodes as well
 * @param promptBlock no step goes past a multiple of it within a prompt
 * @throws AbortedError when the signal ended it; RoundFailedError with what the target threw
 */
export async function decodeRound(
  target: Target,
  sequences: readonly Sequence[],
  signal: AbortSignal,
  maxPromptRows = target.maxRows,
  promptBlock?: number,
): Promise<RoundOutcome> {
  const plans = planRows(sequences, target.maxRows, maxPromptRows, promptBlock);
  try {
    return await runRound(target, sequences, plans, signal);
  } catch (error) {
    if (error instanceof AbortedError) throw error;
    throw new RoundFailedError(
      plans.map(({ sequence }) => sequence),
      error,
    );
  }
}

async function runRound(
  target: Target,
  sequences: readonly Sequence[],
  plans: readonly RowPlan[],
  signal: AbortSignal,
): Promise<RoundOutcome> {
  const started = performance.now();
  const proposed = await propose(sequences, plans, target.facts.vocabSize, signal);
  const { drafts, ready } = await lookAhead(plans, proposed);
  const drafted = performance.now();

  const spans = plans.map(({ sequence, known, complete }) => {
    const { tokens, cache } = sequence;
    const knownTokens = tokens.slice(cache.length, cache.length + known);
    const draft = drafts.get(sequence)?.tokens ?? [];
    const firstWanted = complete ? known - 1 : known;
    return { cache, tokens: [...knownTokens, ...draft], logitsFrom: sequence.wantsPromptLogprobs ? 0 : firstWanted };
  });
  const [result, failures] = await Promise.all([target.step(spans, signal), ready]);

  const verifyMs = performance.now() - drafted;
  const outcomes: SequenceOutcome[] = [];
  const breathe = breather();
  for (const [span, plan] of plans.entries()) {
    if (plan.sequence.wantsPromptLogprobs) await promptLogprobs(plan, span, result, breathe);
    outcomes.push(commit(plan, span, drafts.get(plan.sequence), result, failures));
    await breathe();
  }
  learn(outcomes, drafts, verifyMs);
  const commitMs = performance.now() - drafted - verifyMs;
  return { sequences: outcomes, draftMs: drafted - started, verifyMs, commitMs };
}

function commit(
  plan: RowPlan,
  span: number,
  draft: Draft | undefined,
  result: StepResult,
  failures: ReadonlyMap<Sequence, unknown>,
): SequenceOutcome {
  const { sequence, known, complete } = plan;
  const { cache, sampling } = sequence;
  const logprobs: TokenLogprobs[] | null = sequence.logprobs === null ? null : [];
  const tokens = draft?.tokens ?? [];
  const start = cache.length - known - tokens.length;
  const answered = sequence.emitted > 0;
  const before = sequence.tokens.length;
  let round: RoundRecord | null = null;
  let shortBy: ShortDraftReason | null = null;
  if (complete) {
    const choose = (index: number) => chooseToken(result, span, known - 1 + index, sequence, before + index);
    const emit = (token: TokenId) => {
      const row = known - 1 + sequence.tokens.length - before;
      logprobs?.push(tokenLogprobs(result.logits(span, row), token, sequence.logprobs ?? 0));
      return sequence.emit(token);
    };
    let acceptance: Acceptance;
    try {
      if (failures.has(sequence)) throw failures.get(sequence);
      const synthetic = tokens.length > 0 ? sequence.drafting?.drafter.synthetic : undefined;
      acceptance =
        synthetic === undefined
          ? accept(tokens, choose, emit)
          : acceptSynthetic(tokens, synthetic.accepted(tokens.length, sampling.seed, before - 1), choose, emit);
    } catch (error) {
      const emitted = sequence.tokens.slice(before);
      return { sequence, promptRows: answered ? 0 : known, emitted, logprobs, round, shortBy, shadows: [], failure: { error } };
    }
    cache.truncate(start + known + acceptance.accepted);
    if (answered) {
      round = { drafted: tokens.length, ...acceptance };
      shortBy = draft === undefined ? sequence.draftBudget().reason : draft.shortBy;
      sequence.record(round, shortBy);
      sequence.traces?.push(
        traceRound({
          position: before - 1,
          anchor: sequence.tokens[before - 1] as TokenId,
          draft: tokens,
          proposal: draft?.proposal ?? null,
          emitted: sequence.tokens.slice(before),
          round,
          shortBy,
          temperature: sampling.temperature,
          logits: (index) => result.logits(span, known - 1 + index),
        }),
      );
    }
  }
  sequence.observe({
    position: start,
    tokens: sequence.tokens.slice(start, cache.length),
    taps: result.taps,
    firstRow: result.firstRow(span),
  });
  const shadows = sequence.settleShadows(round);
  const emitted = sequence.tokens.slice(before);
  return { sequence, promptRows: answered ? 0 : known, emitted, logprobs, round, shortBy, shadows, failure: null };
}

/** Tells those who choose draft lengths what came of them. */
function learn(outcomes: readonly SequenceOutcome[], drafts: ReadonlyMap<Sequence, Draft>, verifyMs: number): void {
  const promptRows = outcomes.reduce((sum, outcome) => sum + outcome.promptRows, 0);
  const rows = outcomes.reduce((sum, { round }) => sum + (round === null ? 0 : 1 + round.drafted), 0);
  const policies = new Set(outcomes.flatMap(({ sequence }) => sequence.drafting?.lengths ?? []));
  for (const policy of policies) {
    if (promptRows === 0) policy.learnStep(rows, outcomes.length, verifyMs);
    const verified = outcomes.flatMap(({ sequence, round }) => {
      const draft = drafts.get(sequence);
      return sequence.drafting?.lengths === policy && draft !== undefined && round !== null
        ? [{ sequence, proposal: draft.proposal, round }]
        : [];
    });
    policy.learn(verified);
  }
}
