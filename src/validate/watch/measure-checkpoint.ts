/** One checkpoint of a training run, measured by teacher forcing. */

import { walkedRatio } from '../compare/paired-difference.ts';
import type { ForcedAnswer } from '../measure/answer-records.ts';
import { forcedPass } from '../measure/forced-pass.ts';
import { Measured, type OpenedDrafter, type OpenMeasuredOptions } from '../measure/open-measured.ts';
import type { DiagnosisPrompt } from '../recording/prompt.ts';
import { promptSeed } from '../recording/prompt-seed.ts';
import { forcedAccuracy } from '../report/forced-accuracy.ts';
import { forcedRun, prefixLength, rightSlots } from '../report/forced-walk.ts';
import { Bootstrap } from '../report/interval.ts';
import { folderDigest } from '../report/provenance.ts';
import type { Checkpoint } from './checkpoints.ts';
import type { WatchPoint } from './watch-schema.ts';

export interface MeasureCheckpointOptions extends Omit<OpenMeasuredOptions, 'drafters' | 'draftTokens' | 'observers'> {
  readonly prompts: readonly DiagnosisPrompt[];
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
  readonly onAnswer?: (done: number, total: number) => void;
}

/** @throws AppError naming what cannot be loaded, AbortedError */
export async function measureCheckpoint(
  run: string,
  checkpoint: Checkpoint,
  options: MeasureCheckpointOptions,
): Promise<WatchPoint> {
  const { seed, signal, temperature } = options;
  await using measured = await Measured.open({ ...options, drafters: [checkpoint.folder], draftTokens: 1 });
  const [drafter] = measured.drafters as readonly [OpenedDrafter];
  const { prompts, tooLong } = measured.encode(options.prompts);
  const slots = drafter.drafter.maxDraftTokens;
  const answers = new Map<string, ForcedAnswer>();
  await forcedPass({
    target: measured.opened.target,
    drafters: [drafter],
    draftTokens: slots,
    concurrency: options.concurrency,
    jobs: prompts.map(({ id, category, promptTokens }) => ({
      ...{ id, category, promptTokens },
      sampling: { temperature, topP: 1, topK: 0, minP: 0, seed: promptSeed(seed, id) },
      maxTokens: options.maxTokens,
    })),
    onAnswer(answer) {
      answers.set(answer.id, answer);
      options.onAnswer?.(answers.size, prompts.length);
    },
    ...(signal === undefined ? {} : { signal }),
  });
  const runs = prompts.flatMap(({ id }) => {
    const answer = answers.get(id);
    return answer === undefined ? [] : [{ id, own: forcedRun(answer, drafter.name) }];
  });
  const forced = forcedAccuracy(
    runs.map(({ own }) => own),
    slots,
    seed,
  );
  const ratios = runs.map(({ own }) => walkedRatio(own, slots));
  return {
    run,
    step: checkpoint.step,
    folder: checkpoint.folder,
    sha256: await folderDigest(checkpoint.folder),
    stamp: checkpoint.stamp,
    acceptanceLength: new Bootstrap(runs.length, seed).ratio(ratios),
    streak: forced.streak,
    accuracy: forced.accuracy,
    accuracyBySlot: forced.accuracyBySlot,
    tooLong: [...tooLong],
    prompts: runs.map(({ id, own }, i) => ({
      id,
      emitted: ratios[i]?.dividend ?? 0,
      rounds: ratios[i]?.divisor ?? 0,
      prefix: own.anchors.reduce((sum, _, anchor) => sum + prefixLength(rightSlots(own, anchor)), 0),
      anchors: own.anchors.length,
    })),
  };
}
