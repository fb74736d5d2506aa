/** `blockdraft import`: writes a model or a drafter as a folder of its own, in the form it is computed with. */
import { resolve } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { exportWeights } from '../checkpoint/export-weights.ts';
import { checkDflash } from '../drafter/dflash/check-checkpoint.ts';
import { refuseUnclaimed } from '../drafter/dflash/dflash-weights.ts';
import { readModelConfig } from '../target/hf-config.ts';
import { refuseUnclaimedTensors } from '../target/unclaimed-tensors.ts';
import { formatBytes } from './format.ts';
import { openFolder, targetShape } from './inspect-folder.ts';
import { allowUnclaimedOption, finalTapOption } from './inspect-options.ts';
import { createProgressBar } from './progress-bar.ts';

export function importCommand() {
  return new Command('import')
    .description('Convert a model or a drafter once, into a folder that loads without a cache')
    .argument('<folder>', 'Hugging Face folder of a model, or folder of a drafter')
    .addOption(
      new Option('--weights <format>', 'how matrices are stored')
        .choices(['int8', 'int4', 'f32'] as const)
        .default('int8' as const),
    )
    .requiredOption('--out <folder>', 'where to; must not hold weights yet')
    .option('--target <folder>', 'the target of a drafter, which must fit it, and may leave its layers to it')
    .addOption(allowUnclaimedOption())
    .addOption(finalTapOption())
    .action(async (path, { weights, out, target, allowUnclaimed, finalTap }) => {
      const shape = target === undefined ? null : targetShape(readModelConfig(resolve(target)));
      const opened = await openFolder(path, {
        allowUnclaimed,
        finalTap: finalTap ?? null,
        targetLayers: shape?.layers ?? null,
      });
      const { folder, checkpoint, verbatim } = opened;
      if (opened.role === 'decoder') {
        if (!allowUnclaimed) refuseUnclaimedTensors(checkpoint, opened.config.spec, folder);
      } else if (shape === null) {
        refuseUnclaimed(checkpoint, opened.plan, folder, { besides: verbatim, allowUnclaimed });
      } else {
        await checkDflash(opened.config, checkpoint, shape, allowUnclaimed);
      }
      const plan = opened.plan.map((weight) => ({ ...weight, name: String(weight.source) }));
      // What was said of it need not be said again.
      const config = opened.role === 'dflash' && finalTap !== undefined ? { final_tap: finalTap } : {};
      const outDir = resolve(out);
      const bar = createProgressBar(`Writing ${weights}`, formatBytes);
      const started = performance.now();
      try {
        const written = await exportWeights({
          ...{ checkpoint, plan, verbatim, config, format: weights, outDir },
          onProgress: bar.update,
        });
        bar.end();
        const seconds = ((performance.now() - started) / 1000).toFixed(1);
        process.stdout.write(
          `${outDir}\n  ${written.files.length} files · ${formatBytes(written.weightBytes)} of weights · ${seconds} s\n`,
        );
      } finally {
        bar.end();
      }
    });
}
