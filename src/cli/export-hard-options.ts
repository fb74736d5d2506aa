/** The options of `export-hard`. */
import { Command, Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';
import { decimal } from './validate-shared-options.ts';

export function exportHardCommand() {
  return new Command('export-hard')
    .description(
      "Write the prefixes where a validated drafter failed, with the target's most likely tokens, to train on them again",
    )
    .argument('<validation>', 'folder that validate wrote with --out')
    .addOption(new Option('--max-accepted <n>', 'draft tokens accepted at most').argParser(integer(0)).default(0))
    .addOption(
      new Option('--min-target-probability <p>', 'leave out places where the target was less sure of the token that was missed')
        .argParser(decimal(0, 1))
        .default(0.5),
    )
    .addOption(new Option('--limit <n>', 'so many, the surest first (default: all)').argParser(integer(1)))
    .addOption(new Option('--out <file>', 'where they go, as JSON lines'))
    .addOption(new Option('--json', 'print them as a JSON list').default(false))
    .addHelpText('after', '\nOne of --out and --json is needed, or both.\n');
}

export type ExportHardOptions = ReturnType<ReturnType<typeof exportHardCommand>['opts']>;
