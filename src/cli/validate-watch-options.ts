/** Which options of `validate` go with --watch. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { GATE_NAMES } from '../validate/report/gates.ts';
import { WATCH_GATES } from '../validate/watch/newest-gates.ts';

/** What watching does in its own way, or has no figures for. */
const NOT_WITH_WATCH: readonly string[] = ['drafter', 'draftTokens', 'speedPrompts', 'speedRepeats', 'resume', 'trace'];
const ONLY_WITH_WATCH: readonly string[] = ['trainingLog', 'once', 'pollSeconds'];
const MISUSED = { exitCode: 2 };

/** Ends the command when an option was typed that would be without effect. */
export function refuseForWatch(command: CommandUnknownOpts): void {
  const { watch, once, temperature } = command.opts() as {
    readonly watch: readonly string[];
    readonly once: boolean;
    readonly temperature: readonly number[];
  };
  // The environment may hold what is meant for other commands.
  const typed = command.options.filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli');
  const refuse = (unwanted: (name: string) => boolean, why: string) => {
    const option = typed.find((one) => unwanted(one.attributeName()));
    if (option !== undefined) command.error(`error: ${option.long} ${why}`, MISUSED);
  };
  if (watch.length === 0) {
    refuse((name) => ONLY_WITH_WATCH.includes(name), 'goes with --watch only');
    return;
  }
  refuse((name) => NOT_WITH_WATCH.includes(name), 'does not go with --watch');
  refuse(
    (name) => GATE_NAMES.has(name) && !WATCH_GATES.has(name),
    'does not go with --watch, which measures by teacher forcing',
  );
  if (temperature.length > 1) command.error('error: --watch takes one --temperature', MISUSED);
  if (!once) refuse((name) => GATE_NAMES.has(name), 'goes with --watch only if --once does');
}
