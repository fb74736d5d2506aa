/** The options of `load`, named as k6 names them. */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';

function pair(value: string, previous: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const equals = value.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('Expected NAME=value.');
  return { ...previous, [value.slice(0, equals)]: value.slice(equals + 1) };
}

export function loadCommand() {
  return new Command('load')
    .description('Run a k6 script against a server, where k6 is not installed: a documented part of k6, and not k6 itself')
    .argument(
      '<script>',
      'a file, or the name of one in load-tests/: smoke, steady, ramp, burst, sweep, cancel, websocket, mixed, soak',
    )
    .addOption(
      new Option('-e, --env <NAME=value>', 'a variable for the script, beside those of the environment; may be repeated')
        .argParser(pair)
        .default({} as Readonly<Record<string, string>>, 'none'),
    )
    .addOption(
      new Option('--tag <name=value>', 'a tag of all samples; may be repeated')
        .argParser(pair)
        .default({} as Readonly<Record<string, string>>, 'none'),
    )
    .addOption(new Option('-u, --vus <n>', "virtual users, in place of the script's scenarios").argParser(integer(1, 1000)))
    .addOption(new Option('-i, --iterations <n>', "iterations, in place of the script's scenarios").argParser(integer(1)))
    .addOption(new Option('-d, --duration <time>', "how long, such as 30s, in place of the script's scenarios"))
    .addOption(new Option('--summary-export <file>', 'write the figures as JSON'))
    .addOption(new Option('-q, --quiet', 'no progress').default(false))
    .addHelpText(
      'after',
      '\nExit code: 0 when all thresholds hold, 99 when one is crossed, 104 for options that cannot be used, 105 when it was interrupted,\n' +
        '107 when the script fails, 108 when it aborts the test, 110 when it marks the test as failed.\n',
    );
}

export type LoadOptions = ReturnType<ReturnType<typeof loadCommand>['opts']>;
