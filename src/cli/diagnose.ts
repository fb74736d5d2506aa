/** `blockdraft diagnose`. */
import { openRuntime } from '../onnx/runtime.ts';
import { type DiagnosisStage, diagnose } from '../validate/diagnose.ts';
import { readPrompts } from '../validate/recording/read-prompts.ts';
import { dflashFolder } from './dflash-folder.ts';
import type { DiagnoseCommandOptions } from './diagnose-options.ts';
import { formatDiagnosis } from './diagnose-report.ts';
import { runInterruptibly } from './run-interruptibly.ts';

const FINDINGS = 1;
const STAGES: Readonly<Record<DiagnosisStage, string>> = {
  'recording answers': 'Recording answers',
  'asking what if': 'Asking what if',
  measuring: 'Measuring',
};

/** Prints a diagnosis and sets the exit code; an interrupt ends it. */
export async function runDiagnose(options: DiagnoseCommandOptions): Promise<void> {
  await runInterruptibly(options.progress, async (signal, show) => {
    const diagnosis = await diagnose({
      runtime: openRuntime({ threads: options.threads }),
      target: options.target,
      drafter: dflashFolder(options.drafter, options.target),
      prompts: readPrompts(options.prompts, { limit: options.limit ?? null, seed: options.seed }),
      weights: options.weights,
      maxTokens: options.maxTokens,
      finalTap: options.finalTap ?? null,
      allowUnclaimed: options.allowUnclaimed,
      templateVariables: options.chatTemplateKwargs,
      cacheDir: options.cacheDir ?? null,
      signal,
      onProgress: (stage, done, total) => show(STAGES[stage], String, done, total),
    });
    process.stdout.write(options.json ? `${JSON.stringify(diagnosis, null, 2)}\n` : formatDiagnosis(diagnosis));
    return diagnosis.healthy ? 0 : FINDINGS;
  });
}
