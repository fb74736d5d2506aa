/** What a training run says of itself: JSON lines with a step and figures. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import type { LoggedPoint } from './watch-schema.ts';

const figure = z.number().nullish();
const lineSchema = z.looseObject({
  step: z.number().int().nonnegative(),
  accuracy: figure,
  streak: figure,
  loss: figure,
});

/**
 * Lines with none of the figures, such as of other metrics, are passed over; so is a last line that is not complete.
 * @throws AppError `invalid_config` naming the file and the line
 */
export function readTrainingLog(file: string, run: string): readonly LoggedPoint[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new AppError('invalid_config', `Cannot read the training log ${file}: ${(cause as Error).message}; check the path`, {
      cause,
    });
  }
  const lines = text.split('\n');
  return lines.flatMap((line, i): LoggedPoint[] => {
    if (line.trim() === '') return [];
    let json: unknown;
    try {
      json = JSON.parse(line);
    } catch (cause) {
      if (i === lines.length - 1) return [];
      throw new AppError('invalid_config', `Expected JSON in line ${i + 1} of ${file}: ${(cause as Error).message}`, { cause });
    }
    const parsed = lineSchema.safeParse(json);
    if (!parsed.success) {
      throw new AppError(
        'invalid_config',
        `Expected {"step": n, "accuracy"?, "streak"?, "loss"?} in line ${i + 1} of ${file}, got something else`,
        {
          cause: parsed.error,
        },
      );
    }
    const { step, accuracy = null, streak = null, loss = null } = parsed.data;
    return accuracy === null && streak === null && loss === null ? [] : [{ run, step, accuracy, streak, loss }];
  });
}
