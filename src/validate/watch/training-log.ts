/** What a training run says of itself: JSON lines with a step and figures. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { LoggedPoint } from './watch-schema.ts';

const figure = z.number().nullish();
const lineSchema = z.looseObject({
  step: z.number().int().nonnegative(),
  accuracy: figure,
  streak: figure,
  loss: figure,
});

export interface TrainingLog {
  readonly points: readonly LoggedPoint[];
  /** Why there are no points, or not those of all lines; null when nothing is wrong. */
  readonly complaint: string | null;
}

/**
 * A log is read beside a run that goes on, so none is an error: of what cannot be used the rest is read. Lines with none of
 * the figures, such as of other metrics, are passed over, and so is a last line that is not complete. A figure that is not
 * finite is none.
 */
export function readTrainingLog(file: string, run: string): TrainingLog {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return { points: [], complaint: `Cannot read the training log ${file}: ${(error as Error).message}; it is tried again` };
  }
  const points: LoggedPoint[] = [];
  const unusable: number[] = [];
  const lines = text.split('\n');
  for (const [i, line] of lines.entries()) {
    const values = lineSchema.safeParse(jsonOf(line));
    if (values.success) {
      const { step, accuracy = null, streak = null, loss = null } = values.data;
      if (accuracy !== null || streak !== null || loss !== null) points.push({ run, step, accuracy, streak, loss });
    } else if (line.trim() !== '' && i < lines.length - 1) unusable.push(i + 1);
  }
  const complaint =
    unusable.length === 0
      ? null
      : `Expected {"step": n, "accuracy"?, "streak"?, "loss"?} in each line of ${file}, got something else in line ${unusable[0]}; ` +
        'such lines are passed over';
  return { points, complaint };
}

/** Undefined when it is none. Python writes a loss that has diverged as NaN or Infinity, which JSON does not have. */
function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line.replace(/-?\b(?:NaN|Infinity)\b/g, 'null'));
  } catch {
    return undefined;
  }
}
