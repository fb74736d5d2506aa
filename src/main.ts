/** Entry of the command line. */
import { readFileSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { runCompare } from './cli/compare.ts';
import { compareCommand } from './cli/compare-options.ts';
import { runDiagnose } from './cli/diagnose.ts';
import { diagnoseCommand } from './cli/diagnose-options.ts';
import { runExportHard } from './cli/export-hard.ts';
import { exportHardCommand } from './cli/export-hard-options.ts';
import { importCommand } from './cli/import-command.ts';
import { inspectCommand } from './cli/inspect-command.ts';
import { pullCommand } from './cli/pull-command.ts';
import { runRecord } from './cli/record.ts';
import { recordCommand } from './cli/record-options.ts';
import { serve } from './cli/serve.ts';
import { serveCommand } from './cli/serve-options.ts';
import { runValidate } from './cli/validate.ts';
import { validateCommand } from './cli/validate-options.ts';
import { AppError } from './core/app-error.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

const program = new Command('blockdraft')
  .description('Speculative-decoding server, and the bench on which trained drafters are proved or found out')
  .version(version)
  .addCommand(
    serveCommand().action((options) => serve(options, version)),
    { isDefault: true },
  )
  .addCommand(diagnoseCommand().action(runDiagnose))
  .addCommand(validateCommand().action(runValidate))
  .addCommand(compareCommand().action(runCompare))
  .addCommand(recordCommand().action(runRecord))
  .addCommand(exportHardCommand().action(runExportHard))
  .addCommand(pullCommand())
  .addCommand(importCommand())
  .addCommand(inspectCommand());

try {
  await program.parseAsync();
} catch (error) {
  // What we raise on purpose says what to do; a stack would hide it.
  process.stderr.write(
    `blockdraft: ${error instanceof AppError ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exitCode = 1;
}
