import { vi } from 'vitest';

interface ParsesArguments {
  parseAsync(words: readonly string[], options: { from: 'user' }): Promise<unknown>;
}

/** Runs a command as the command line does. @returns what it wrote to standard output */
export async function runCommand(command: ParsesArguments, ...words: readonly string[]): Promise<string> {
  let output = '';
  const capture = (text: string | Uint8Array) => {
    output += String(text);
    return true;
  };
  const standard = vi.spyOn(process.stdout, 'write').mockImplementation(capture);
  const progress = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  try {
    await command.parseAsync(words, { from: 'user' });
    return output;
  } finally {
    standard.mockRestore();
    progress.mockRestore();
  }
}
