/** The options of `diagnose`. */

import { resolve } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { cacheDirOption, threadsOption } from './compute-options.ts';
import { allowUnclaimedOption, finalTapOption } from './inspect-options.ts';
import { integer } from './integer-argument.ts';
import { progressOption } from './progress.ts';
import { DEFAULT_TARGET } from './serve-options.ts';
import { chatTemplateKwargsOption } from './validate-shared-options.ts';

export const BUNDLED_PROMPTS = resolve(import.meta.dirname, '../validate/prompts/general.jsonl');

export function diagnoseCommand() {
  return new Command('diagnose')
    .description('Find out what is wrong with a trained drafter: which setting or training fault explains its acceptance')
    .addOption(
      new Option('--target <folder>', 'Hugging Face folder of the target')
        .env('BLOCKDRAFT_TARGET')
        .default(DEFAULT_TARGET, 'the embedded SmolLM2-135M-Instruct'),
    )
    .addOption(
      new Option('--drafter <folder>', 'folder of the DFlash drafter (default: dflash, the folder <target>-dflash)').env(
        'BLOCKDRAFT_DRAFTER',
      ),
    )
    .addOption(
      new Option('--prompts <file>', 'JSON lines with messages or prompt, and perhaps id and category').default(
        BUNDLED_PROMPTS,
        'a bundled set of 40',
      ),
    )
    .addOption(
      new Option('--limit <n>', 'take so many prompts, evenly from all categories (default: all)').argParser(integer(2)),
    )
    .addOption(new Option('--seed <n>', 'order in which prompts of a category are taken').argParser(integer(0)).default(0))
    .addOption(new Option('--max-tokens <n>', 'longest answer recorded').argParser(integer(8)).default(64))
    .addOption(
      new Option('--weights <format>', 'how matrices are stored').choices(['f32', 'int8'] as const).default('f32' as const),
    )
    .addOption(chatTemplateKwargsOption())
    .addOption(finalTapOption())
    .addOption(allowUnclaimedOption())
    .addOption(cacheDirOption())
    .addOption(threadsOption())
    .addOption(progressOption())
    .addOption(new Option('--json', 'print the whole diagnosis as JSON').default(false))
    .addHelpText(
      'after',
      '\nExit code: 0 when nothing costs acceptance, 1 when a finding does, 2 when the diagnosis could not be made,\n130 when it was interrupted.\n',
    );
}

export type DiagnoseCommandOptions = ReturnType<ReturnType<typeof diagnoseCommand>['opts']>;
