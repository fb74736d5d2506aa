/** Options of every command that opens a model folder. */
import { Option } from '@commander-js/extra-typings';

export function allowUnclaimedOption() {
  return new Option('--allow-unclaimed', 'keys and tensors that nothing uses are no error').default(false);
}

export function finalTapOption() {
  return new Option('--final-tap <place>', "which output of the target's last layer a drafter was trained on").choices([
    'pre',
    'post',
  ] as const);
}
