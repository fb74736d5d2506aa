/** Every command of the documents, by the parser of the command itself. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { describe, expect, it } from 'vitest';
import { benchServeCommand } from '../../../src/cli/bench-serve-options.ts';
import { compareCommand } from '../../../src/cli/compare-options.ts';
import { diagnoseCommand } from '../../../src/cli/diagnose-options.ts';
import { exportHardCommand } from '../../../src/cli/export-hard-options.ts';
import { importCommand } from '../../../src/cli/import-command.ts';
import { inspectCommand } from '../../../src/cli/inspect-command.ts';
import { loadCommand } from '../../../src/cli/load-options.ts';
import { pullCommand } from '../../../src/cli/pull-command.ts';
import { recordCommand } from '../../../src/cli/record-options.ts';
import { serveCommand } from '../../../src/cli/serve-options.ts';
import { validateCommand } from '../../../src/cli/validate-options.ts';

const ROOT = join(import.meta.dirname, '../../..');
const COMMANDS: readonly (() => CommandUnknownOpts)[] = [
  benchServeCommand,
  compareCommand,
  diagnoseCommand,
  exportHardCommand,
  importCommand,
  inspectCommand,
  loadCommand,
  pullCommand,
  recordCommand,
  serveCommand,
  validateCommand,
];
const NPM: Readonly<Record<string, string>> = { 'npm start': 'serve', 'npm run load': 'load' };

interface Documented {
  readonly file: string;
  readonly command: string;
  readonly words: readonly string[];
}

/** Commands in blocks of code, with what they are given. */
function documented(): readonly Documented[] {
  const files = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];
  return files
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => {
      const blocks = readFileSync(join(ROOT, file), 'utf8').matchAll(/^```\w*\n(.*?)^```$/gms);
      return [...blocks].flatMap(([, block]) =>
        block!
          .replaceAll('\\\n', ' ')
          .split('\n')
          .flatMap((line) => {
            const [, npm, own, rest = ''] =
              /^(?:(npm start|npm run load)(?: --)?|(?:npx )?blockdraft ([\w-]+))(?: (.*))?$/.exec(line) ?? [];
            const command = own ?? NPM[npm ?? ''];
            return command === undefined ? [] : [{ file, command, words: shellWords(rest) }];
          }),
      );
    });
}

/** Brackets around what may be left out are not of the command, nor is a remark behind it. */
function shellWords(text: string): string[] {
  const words = text.replace(/(^|\s)#.*$/, '').matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...words].map(([, double, single, plain = '']) => double ?? single ?? plain.replace(/^\[(?=--)|\](?=$)/g, ''));
}

function parse(name: string, words: readonly string[]): void {
  const make = COMMANDS.find((create) => create().name() === name);
  if (make === undefined) throw new Error(`Expected a command of blockdraft, got ${name}`);
  const command = make()
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
    .action(() => undefined);
  try {
    command.parse([...words], { from: 'user' });
  } catch (error) {
    if ((error as { readonly code?: string }).code !== 'commander.helpDisplayed') throw error;
  }
}

describe('a documented command', () => {
  it.each(documented().map(({ file, command, words }) => [file, command, words.join(' '), words] as const))(
    'of %s is one that blockdraft takes: %s %s',
    (_, command, __, words) => {
      parse(command, words);
      const separator = words.indexOf('--');
      if (command === 'bench-serve' && separator >= 0) parse('serve', words.slice(separator + 1));
    },
  );

  it('is found', () => {
    expect(new Set(documented().map(({ command }) => command)).size).toBeGreaterThan(8);
    expect(() => parse('record', ['--prompts', 'p.jsonl'])).toThrow(/--out/);
    expect(() => parse('serve', ['--no-such'])).toThrow(/--no-such/);
  });
});
