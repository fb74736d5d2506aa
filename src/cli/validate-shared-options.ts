/** Options that the commands which measure drafters have in common. */

import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { z } from 'zod';
import type { Device } from '../onnx/device.ts';
import {
  cacheDirOption,
  deviceIdOption,
  deviceOption,
  maxContextOption,
  threadsOption,
  weightsOption,
} from './compute-options.ts';
import { allowUnclaimedOption, finalTapsOption } from './inspect-options.ts';
import { integer } from './integer-argument.ts';
import { progressOption } from './progress.ts';
import { DEFAULT_TARGET } from './serve-options.ts';

export const BUNDLED_PROMPTS = resolve(import.meta.dirname, '../validate/prompts/by-category.jsonl');

export function decimal(least: number, most = Number.POSITIVE_INFINITY) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isFinite(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(
      `Expected a number of at least ${least}${most < Number.POSITIVE_INFINITY ? ` and at most ${most}` : ''}.`,
    );
  };
}

/** As requests have them to a server. */
export function chatTemplateKwargsOption() {
  return new Option('--chat-template-kwargs <json>', 'variables for the chat template, such as {"enable_thinking": false}')
    .argParser((text): Readonly<Record<string, unknown>> => {
      const parsed = z.record(z.string(), z.unknown()).safeParse(jsonOf(text));
      if (parsed.success) return parsed.data;
      throw new InvalidArgumentError('Expected a JSON object.');
    })
    .default({} as Readonly<Record<string, unknown>>, 'none');
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Which models, which prompts and how they are run. */
export function measuringCommand(name: string) {
  return new Command(name)
    .addOption(
      new Option('--target <folder>', 'Hugging Face folder of the target')
        .env('BLOCKDRAFT_TARGET')
        .default(DEFAULT_TARGET, 'the embedded SmolLM2-135M-Instruct'),
    )
    .addOption(
      new Option('--prompts <file>', 'JSON lines with messages or prompt, and perhaps id and category').default(
        BUNDLED_PROMPTS,
        'a bundled set of 64 in 8 categories',
      ),
    )
    .addOption(
      new Option('--limit <n>', 'take so many prompts, evenly from all categories (default: all)').argParser(integer(2)),
    )
    .addOption(
      new Option('--seed <n>', 'of sampling, of intervals and of the choice of prompts').argParser(integer(0)).default(0),
    )
    .addOption(new Option('--max-tokens <n>', 'longest answer').argParser(integer(2)).default(96))
    .addOption(chatTemplateKwargsOption())
    .addOption(finalTapsOption())
    .addOption(allowUnclaimedOption())
    .addOption(weightsOption())
    .addOption(deviceOption())
    .addOption(deviceIdOption())
    .addOption(threadsOption())
    .addOption(maxContextOption())
    .addOption(cacheDirOption())
    .addOption(progressOption());
}

export type MeasuringOptions = ReturnType<ReturnType<typeof measuringCommand>['opts']>;

export function chosenDevice({ device, deviceId }: Pick<MeasuringOptions, 'device' | 'deviceId'>): Device {
  return device === 'cuda' ? { kind: 'cuda', deviceId } : { kind: 'cpu' };
}
