import { expect, it } from 'vitest';
import { validateCommand } from '../../../src/cli/validate-options.ts';

/** What the command says to words that it does not take; empty when it takes them. */
async function refusal(words: string): Promise<string> {
  let said = '';
  const command = validateCommand()
    .exitOverride()
    .configureOutput({ writeErr: (text) => (said += text) })
    .action(() => undefined);
  await command.parseAsync(words.split(' '), { from: 'user' }).catch((error: { readonly exitCode: number }) => {
    expect(error.exitCode).toBe(2);
  });
  return said;
}

it.each([
  ['--watch r --drafter ngram', '--drafter does not go with --watch'],
  ['--watch r --speed-prompts 2', '--speed-prompts does not'],
  ['--watch r --trace t', '--trace does not'],
  ['--watch r --out o --resume', '--resume does not'],
  ['--watch r --draft-tokens 3', '--draft-tokens does not'],
  ['--watch r --temperature 0,1', 'one --temperature'],
  ['--watch r --once --min-speed-up 2', '--min-speed-up does not'],
  ['--watch r --once --max-calibration-error 0.1', '--max-calibration-error does not'],
  ['--watch r --min-streak 2', '--min-streak goes with --watch only if --once does'],
  ['--once', '--once goes with --watch only'],
  ['--training-log l', '--training-log goes with --watch only'],
  ['--poll-seconds 3', '--poll-seconds goes with --watch only'],
])('validate %s is refused', async (words, reason) => {
  expect(await refusal(words)).toContain(reason);
});

it.each([
  '--watch r --training-log l --poll-seconds 2 --json --out o --temperature 0.8 --limit 4 --max-tokens 8 --max-context 64',
  '--watch r --once --min-streak 2 --min-acceptance-length 2 --min-first-slot-accuracy 0.5',
  '--drafter ngram --min-streak 2 --min-speed-up 1 --temperature 0,1 --speed-prompts 2',
])('validate %s is taken', async (words) => {
  expect(await refusal(words)).toBe('');
});
