/** Options of the commands that compute: how weights are stored, where they are kept, and where it all runs. */
import { availableParallelism } from 'node:os';
import { Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';

export function deviceOption() {
  return new Option('--device <device>', 'where to compute')
    .env('BLOCKDRAFT_DEVICE')
    .choices(['cpu', 'cuda'] as const)
    .default('cpu' as const);
}

export function deviceIdOption() {
  return new Option('--device-id <n>', 'which CUDA device').env('BLOCKDRAFT_DEVICE_ID').argParser(integer(0)).default(0);
}

export function threadsOption() {
  return new Option('--threads <n>', 'threads of one run')
    .env('BLOCKDRAFT_THREADS')
    .argParser(integer(1, 1024))
    .default(availableParallelism(), 'all cores');
}

export function maxContextOption() {
  return new Option('--max-context <n>', "positions per sequence, prompt and answer (default: the model's)")
    .env('BLOCKDRAFT_MAX_CONTEXT')
    .argParser(integer(2));
}

export function cacheDirOption() {
  return new Option('--cache-dir <folder>', 'where converted weights are kept (default: ~/.cache/blockdraft)').env(
    'BLOCKDRAFT_CACHE_DIR',
  );
}

export function weightsOption() {
  return new Option('--weights <format>', "how matrices are stored (default: int8 on a CPU; on CUDA bf16, or the target's f16)")
    .env('BLOCKDRAFT_WEIGHTS')
    .choices(['int8', 'int4', 'f32', 'bf16', 'f16'] as const);
}
