/** The options of `record`. */
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';
import { decimal, measuringCommand } from './validate-shared-options.ts';

function layerIds(text: string): readonly number[] {
  const ids = text.split(',').map((part) => part.trim());
  if (!ids.every((id) => /^-?\d+$/.test(id) && Number(id) >= -1))
    throw new InvalidArgumentError('Expected layer ids, such as 1,8,14.');
  return ids.map(Number);
}

export function recordCommand() {
  return measuringCommand('record')
    .description("Make training data for drafters: the target's own answers with its activations, in safetensors shards")
    .addOption(new Option('--taps <ids>', 'layers to record, counted from 0; -1 is the embedding').argParser(layerIds))
    .addOption(
      new Option(
        '--drafter <folder>',
        'record the layers that this DFlash drafter taps (default: dflash, the folder <target>-dflash)',
      ).env('BLOCKDRAFT_DRAFTER'),
    )
    .addOption(new Option('--no-last-hidden-state', 'leave out the output behind the final norm'))
    .addOption(
      new Option('--precision <type>', 'of the recorded activations')
        .choices(['f32', 'bf16', 'f16'] as const)
        .default('bf16' as const),
    )
    .addOption(
      new Option('--turns <which>', 'answer every user turn in place of the answers given, or the last one behind them')
        .choices(['all', 'last'] as const)
        .default('all' as const),
    )
    .addOption(new Option('--temperature <t>', 'sampling temperature of the answers').argParser(decimal(0)).default(0))
    .addOption(new Option('--sequences <n>', 'sequences decoded together').argParser(integer(1, 256)).default(64))
    .addOption(new Option('--max-rows <n>', 'rows of one step, prompts included').argParser(integer(32)).default(512))
    .addOption(new Option('--shard-rows <n>', 'rows after which a shard is written').argParser(integer(1)).default(16_384))
    .addOption(new Option('--resume', 'go on with the recording in --out').default(false))
    .addOption(new Option('--json', 'print the manifest, and what this run did, as JSON').default(false))
    .requiredOption('--out <folder>', 'where shards and manifest go')
    .addHelpText(
      'after',
      '\nExit code: 0 when every prompt was recorded that leaves room for an answer (the manifest lists the others), 2 when it could not be, 130 when it was interrupted; --resume goes on.\n',
    );
}

export type RecordCommandOptions = ReturnType<ReturnType<typeof recordCommand>['opts']>;
