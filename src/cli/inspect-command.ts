/** `blockdraft inspect`: what a folder is, without loading it. */
import { Command } from '@commander-js/extra-typings';
import { AppError } from '../core/app-error.ts';
import { inspectFolder } from './inspect-facts.ts';
import { type DecoderFolder, openFolder } from './inspect-folder.ts';
import { allowUnclaimedOption, finalTapOption } from './inspect-options.ts';
import { inspectionReport } from './inspect-report.ts';

export function inspectCommand() {
  return new Command('inspect')
    .description('Say what a folder is: model or drafter, tensors, taps, memory, and whether it fits a target')
    .argument('<folder>', 'Hugging Face folder of a model, or folder of a drafter')
    .option('--target <folder>', 'a target that it is to draft for')
    .option('--json', 'as JSON', false)
    .addOption(allowUnclaimedOption())
    .addOption(finalTapOption())
    .addHelpText('after', '\nExit code: 0, or 1 for what cannot be read or does not fit the target.\n')
    .action(async (path, { target: targetPath, json, allowUnclaimed, finalTap }) => {
      const target = targetPath === undefined ? null : await openTarget(targetPath);
      const options = { allowUnclaimed, finalTap: finalTap ?? null, targetLayers: target?.config.spec.layers.length ?? null };
      const inspection = await inspectFolder(await openFolder(path, options), target, allowUnclaimed);
      process.stdout.write(json ? `${JSON.stringify(inspection, null, 2)}\n` : inspectionReport(inspection));
      if (inspection.compatibility?.problem) process.exitCode = 1;
    });
}

async function openTarget(path: string): Promise<DecoderFolder> {
  const opened = await openFolder(path);
  if (opened.role === 'decoder') return opened;
  throw new AppError('invalid_config', `Expected a model as the target, got the drafter in ${opened.folder}; name its target`);
}
