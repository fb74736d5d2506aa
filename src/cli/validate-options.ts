/** The options of `validate`. */
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';
import { decimal, measuringCommand } from './validate-shared-options.ts';
import { refuseForWatch } from './validate-watch-options.ts';

function numbers(text: string): readonly number[] {
  const values = text.split(',').map(decimal(0));
  if (new Set(values).size !== values.length) throw new InvalidArgumentError('Expected each temperature once.');
  return values;
}

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value];
}

export function validateCommand() {
  return measuringCommand('validate')
    .description('Measure a trained drafter: acceptance by every definition, teacher forcing, calibration and speed-up')
    .addOption(
      new Option('--drafter <[name=]drafter>', 'ngram, dflash (the folder <target>-dflash), or a drafter folder')
        .env('BLOCKDRAFT_DRAFTER')
        .default('dflash'),
    )
    .addOption(
      new Option('--temperature <list>', 'sampling temperatures, comma-separated; the first is reported in detail')
        .argParser(numbers)
        .default([0] as readonly number[], '0'),
    )
    .addOption(
      new Option('--draft-tokens <n|auto>', 'length of each draft (default: whole blocks); auto: as long as it pays').argParser(
        (text): number | 'auto' => (text === 'auto' ? text : integer(1)(text)),
      ),
    )
    .addOption(new Option('--concurrency <n>', 'requests decoded together').argParser(integer(1, 64)).default(8))
    .addOption(new Option('--speed-prompts <n>', 'prompts that are timed; 0: none').argParser(integer(0)).default(8))
    .addOption(new Option('--speed-repeats <n>', 'times that each of them is timed').argParser(integer(1)).default(1))
    .addOption(new Option('--out <folder>', 'where the report, the CSV files and the answers go'))
    .addOption(new Option('--resume', 'go on with the answers that an interrupted run left in --out').default(false))
    .addOption(new Option('--trace <file>', 'write every round with its tokens as JSON lines'))
    .addOption(new Option('--json', 'print the report as JSON in place of tables').default(false))
    .addOption(new Option('--min-acceptance-length <x>', 'fail below: tokens per round').argParser(decimal(0)))
    .addOption(new Option('--min-draft-acceptance-rate <x>', 'fail below: accepted / drafted').argParser(decimal(0, 1)))
    .addOption(new Option('--min-first-slot-accuracy <x>', 'fail below: teacher-forced, slot 1').argParser(decimal(0, 1)))
    .addOption(new Option('--min-streak <x>', 'fail below: mean right prefix, teacher-forced').argParser(decimal(0)))
    .addOption(new Option('--min-speed-up <x>', 'fail below: measured against plain decoding').argParser(decimal(0)))
    .addOption(new Option('--max-calibration-error <x>', "fail above: of the drafter's confidence").argParser(decimal(0, 1)))
    .addOption(
      new Option(
        '--watch <[name=]folder>',
        'measure each checkpoint folder in it as it appears; may be repeated to compare runs',
      )
        .argParser(collect)
        .default([] as readonly string[], 'none'),
    )
    .addOption(
      new Option('--training-log <[name=]file>', 'JSON lines {step, accuracy, streak, loss} to draw beside a --watch run')
        .argParser(collect)
        .default([] as readonly string[], 'none'),
    )
    .addOption(new Option('--once', 'with --watch: end when all that is there was measured').default(false))
    .addOption(new Option('--poll-seconds <n>', 'with --watch: time between two looks').argParser(decimal(0.1)).default(10))
    .hook('preAction', refuseForWatch)
    .addHelpText(
      'after',
      '\nExit code: 0 when all gates pass, 1 when one does not, 2 when nothing could be measured, 3 when speculative and plain\n' +
        'decoding gave different tokens, 130 when it was interrupted (the report then says that it is partial).\n' +
        'With --watch, interrupting is the end, and 0; with --once, the newest checkpoint of each run has to be measured and to\n' +
        'pass --min-acceptance-length, --min-first-slot-accuracy and --min-streak, where they are given.\n',
    );
}

export type ValidateCommandOptions = ReturnType<ReturnType<typeof validateCommand>['opts']>;
