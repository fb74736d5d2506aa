/** Entry of the command line. */
import { readFileSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { benchServeCommand } from './cli/bench-serve-options.ts';
import { compareCommand } from './cli/compare-options.ts';
import { diagnoseCommand } from './cli/diagnose-options.ts';
import { exportHardCommand } from './cli/export-hard-options.ts';
import { importCommand } from './cli/import-command.ts';
import { inspectCommand } from './cli/inspect-command.ts';
import { loadCommand } from './cli/load-options.ts';
import { pullCommand } from './cli/pull-command.ts';
import { recordCommand } from './cli/record-options.ts';
import { serveCommand } from './cli/serve-options.ts';
import { validateCommand } from './cli/validate-options.ts';
import { AppError } from './core/app-error.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

// Each command loads its code when it runs: the server should not wait for what only the bench needs.
const program = new Command('blockdraft')
  .description('Speculative-decoding server, and the bench on which trained drafters are proved or found out')
  .version(version)
  .addCommand(serveCommand().action(async (options) => (await import('./cli/serve.ts')).serve(options, version)))
  .addCommand(diagnoseCommand().action(async (options) => (await import('./cli/diagnose.ts')).runDiagnose(options)))
  .addCommand(validateCommand().action(async (options) => (await import('./cli/validate.ts')).runValidate(options)))
  .addCommand(
    compareCommand().action(async (drafters, options) => (await import('./cli/compare.ts')).runCompare(drafters, options)),
  )
  .addCommand(recordCommand().action(async (options) => (await import('./cli/record.ts')).runRecord(options)))
  .addCommand(
    exportHardCommand().action(async (folder, options) =>
      (await import('./cli/export-hard.ts')).runExportHard(folder, options),
    ),
  )
  .addCommand(
    benchServeCommand().action(async (serveOptions, options) =>
      (await import('./cli/bench-serve.ts')).runBenchServe(serveOptions, options),
    ),
  )
  .addCommand(loadCommand().action(async (script, options) => (await import('./cli/load.ts')).runLoad(script, options)))
  .addCommand(pullCommand())
  .addCommand(importCommand())
  .addCommand(inspectCommand());

/** Words that no command understands: as argparse has it, since 1 says of the bench that a gate failed; `load` has k6's codes. */
const MISUSED = 2;
const LOAD_MISUSED = 104;
for (const command of [program, ...program.commands]) {
  const misused = command.name() === 'load' ? LOAD_MISUSED : MISUSED;
  // Help and version end here, too.
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : misused));
}

/** Flags of the program itself; all other words that are none of a command are those of `serve`. */
const OWN_FLAGS = ['-h', '--help', '-V', '--version'];

/**
 * `serve` is the command where none is named. Commander's own default would also take a command that was misspelt, as a word
 * too many of `serve`.
 */
function withCommand(words: readonly string[]): readonly string[] {
  const [first = '--'] = words;
  return first.startsWith('-') && !OWN_FLAGS.includes(first) ? ['serve', ...words] : words;
}

try {
  await program.parseAsync(withCommand(process.argv.slice(2)), { from: 'user' });
} catch (error) {
  // What we raise on purpose says what to do; a stack would hide it.
  process.stderr.write(
    `blockdraft: ${error instanceof AppError ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exitCode = 1;
}
