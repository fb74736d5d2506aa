/** `blockdraft record`. */
import { readDflashConfig } from '../drafter/dflash/dflash-config.ts';
import { parseFinalTaps } from '../drafter/dflash/final-taps.ts';
import { openRuntime } from '../onnx/runtime.ts';
import { readModelConfig } from '../target/hf-config.ts';
import { type RecordSummary, record } from '../validate/record/record.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import { chosenWeights } from './chosen-weights.ts';
import { dflashFolder } from './dflash-folder.ts';
import type { RecordCommandOptions } from './record-options.ts';
import { runInterruptibly } from './run-interruptibly.ts';
import { chosenDevice } from './validate-shared-options.ts';

const INTERRUPTED = 130;
/** Skipped sequences that are named. */
const NAMED = 8;

export async function runRecord(options: RecordCommandOptions): Promise<void> {
  await runInterruptibly(options.progress, async (signal, show) => {
    const target = options.target.replace(/[\\/]+$/, '');
    const summary = await record({
      runtime: openRuntime({ threads: options.threads }),
      device: chosenDevice(options),
      target,
      weights: await chosenWeights(options),
      prompts: readPrompts(options.prompts, { limit: options.limit ?? null, seed: options.seed }),
      turns: options.turns,
      templateVariables: options.chatTemplateKwargs,
      allowUnclaimed: options.allowUnclaimed,
      taps: options.taps ?? tapsOf(dflashFolder(options.drafter, target), target, options),
      lastHiddenState: options.lastHiddenState,
      precision: options.precision,
      maxTokens: options.maxTokens,
      temperature: options.temperature,
      seed: options.seed,
      sequences: options.sequences,
      maxRows: Math.max(options.maxRows, options.sequences),
      maxContext: options.maxContext ?? null,
      shardRows: options.shardRows,
      out: options.out,
      resume: options.resume,
      cacheDir: options.cacheDir ?? null,
      signal,
      onProgress: (done, total) => show('Recording', String, done, total),
    });
    process.stdout.write(options.json ? `${JSON.stringify(summary, null, 2)}\n` : describe(summary, options.out));
    return summary.manifest.complete ? 0 : INTERRUPTED;
  });
}

function tapsOf(folder: string, target: string, { finalTap, allowUnclaimed }: RecordCommandOptions): readonly number[] {
  const targetLayers = readModelConfig(target).spec.layers.length;
  return readDflashConfig(folder, { targetLayers, finalTap: parseFinalTaps(finalTap).others, allowUnclaimed }).taps;
}

function describe({ manifest, sequences, rows, answerTokens, totalMs, stepMs }: RecordSummary, out: string): string {
  const { shards, skipped, complete, conditions } = manifest;
  const all = shards.reduce((sum, shard) => sum + shard.sequences, 0);
  const rate = (ms: number) => ((1000 * answerTokens) / ms).toFixed(1);
  const speed =
    sequences === 0
      ? []
      : [
          `${sequences} sequences, ${rows} rows, ${answerTokens} answer tokens in ${(totalMs / 1000).toFixed(1)} s: ${rate(totalMs)} tokens/s, ` +
            `${((100 * stepMs) / totalMs).toFixed(1)} % of the ${rate(stepMs)} that the graph alone makes with these steps`,
        ];
  const tensors = [...conditions.taps.map((tap) => `tap.${tap}`), ...(conditions.lastHiddenState ? ['last_hidden_state'] : [])];
  return [
    ...speed,
    `${out}: ${all} sequences in ${shards.length} shards of ${conditions.precision}, ${tensors.join(' ')}`,
    ...(skipped.length === 0
      ? []
      : [
          `${skipped.length} left out, which fill the context: ${skipped.slice(0, NAMED).join(', ')}${skipped.length > NAMED ? ', …' : ''}`,
        ]),
    ...(complete ? [] : ['INTERRUPTED: go on with --resume']),
    '',
  ].join('\n');
}
