/** The options of `compare`. */
import { Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';
import { decimal, measuringCommand } from './validate-shared-options.ts';

export function compareCommand() {
  return measuringCommand('compare')
    .description('Compare drafters on the same prefixes of the same target: paired differences with intervals, and a verdict')
    .argument('<drafters...>', 'the first is compared with each of the others: [name=]folder, ngram or dflash')
    .addOption(new Option('--temperature <t>', 'sampling temperature').argParser(decimal(0)).default(0))
    .addOption(new Option('--draft-tokens <n>', 'the longest draft that counts (default: whole blocks)').argParser(integer(1)))
    .addOption(
      new Option('--margin <x>', 'difference in tokens per round that is too small to matter')
        .argParser(decimal(0))
        .default(0.05),
    )
    .addOption(new Option('--concurrency <n>', 'requests decoded together').argParser(integer(1, 64)).default(8))
    .addOption(new Option('--out <folder>', 'where comparison.json and comparison.html go'))
    .addOption(new Option('--json', 'print the comparison as JSON in place of tables').default(false))
    .addHelpText(
      'after',
      '\nExit code: 0 when no later drafter is worse than the first, 1 when one is, 2 when nothing could be compared, 130 when it was interrupted.\n',
    );
}

export type CompareCommandOptions = ReturnType<ReturnType<typeof compareCommand>['opts']>;
