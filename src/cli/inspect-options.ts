/** Options of every command that opens a model folder. */
import { Option } from '@commander-js/extra-typings';
import { FINAL_TAPS } from '../drafter/dflash/tapped-layers.ts';
import { collect } from './list-argument.ts';

export function allowUnclaimedOption() {
  return new Option('--allow-unclaimed', 'keys and tensors that nothing uses are no error')
    .env('BLOCKDRAFT_ALLOW_UNCLAIMED')
    .default(false);
}

/** Of the one folder that a command opens. */
export function finalTapOption() {
  return new Option('--final-tap <place>', "which output of the target's last layer the drafter was trained on").choices(
    FINAL_TAPS,
  );
}

/** Of any number of drafters; `parseFinalTaps` reads what it gives. */
export function finalTapsOption() {
  return new Option(
    '--final-tap <[name=]place>',
    "pre or post: which output of the target's last layer a drafter was trained on, where it taps that and its config does not say; may be repeated, by name",
  )
    .env('BLOCKDRAFT_FINAL_TAP')
    .argParser(collect)
    .default([] as readonly string[], 'none');
}
