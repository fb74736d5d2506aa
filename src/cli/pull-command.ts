/** `blockdraft pull`: fetches a model or a drafter from the Hugging Face hub. */
import { basename, resolve } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { hubOptionsFromEnv } from '../hub/hub-client.ts';
import { parseHubRepo } from '../hub/hub-repo.ts';
import { pullRepo } from '../hub/pull-repo.ts';
import { formatBytes } from './format.ts';
import { createProgressBar } from './progress-bar.ts';

export function pullCommand() {
  return new Command('pull')
    .description('Fetch a model or a drafter from the Hugging Face hub: weights, configuration and tokenizer, nothing else')
    .argument('<repo>', 'owner/name, or owner/name@revision (a branch, a tag or a commit)')
    .option('--to <folder>', 'where to (default: a folder of its name here)')
    .addHelpText('after', '\nHF_ENDPOINT names another hub, HF_TOKEN an account. What was begun is gone on with.')
    .action(async (words, options) => {
      const repo = parseHubRepo(words);
      const folder = resolve(options.to ?? basename(repo.name));
      const bar = createProgressBar(`Fetching ${repo.name}`, formatBytes);
      try {
        const pulled = await pullRepo({ hub: hubOptionsFromEnv(process.env), repo, folder, onProgress: bar.update });
        bar.end();
        process.stdout.write(
          `${folder}\n  ${pulled.files.length} files · ${formatBytes(pulled.bytes)} · commit ${pulled.commit}\n\n` +
            `  blockdraft inspect ${folder}\n`,
        );
      } finally {
        bar.end();
      }
    });
}
