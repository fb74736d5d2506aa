import { describe, expect, it } from 'vitest';
import { serve } from '../../../src/cli/serve.ts';
import { serveCommand, share } from '../../../src/cli/serve-options.ts';

function optionsOf(...words: readonly string[]) {
  return serveCommand()
    .parse([...words], { from: 'user' })
    .opts();
}

describe('options of drafters that are compared', () => {
  it.each([
    ['--allow-drafter-swap'],
    ['--allow-drafter-swap', '--api-key', 'k'],
    ['--allow-drafter-swap', '--drafter-dir', '.'],
  ])('refuse to replace drafters without keys and a folder (%s %s)', async (...words) => {
    const starting = serve(optionsOf(...words.filter((word) => word !== undefined)), '0');
    await expect(starting).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringMatching(/--drafter-dir/) });
  });

  it('are off by default', () => {
    expect(optionsOf()).toMatchObject({ shadow: [], auditRate: 0, allowTrace: false, allowDrafterSwap: false });
    expect(optionsOf('--shadow', 'a,b', '--shadow', 'c').shadow).toEqual(['a', 'b', 'c']);
  });

  it('say for each drafter on which side of the final norm it taps the last layer', () => {
    expect(optionsOf().finalTap).toEqual([]);
    expect(optionsOf('--final-tap', 'pre', '--final-tap', 'mine=post').finalTap).toEqual(['pre', 'mine=post']);
  });

  it('name drafters that are served in --final-tap', async () => {
    const words = ['--drafter', 'ngram', '--final-tap', 'mine=pre', '--weights', 'f32', '--port', '0', '--log-level', 'error'];
    await expect(serve(optionsOf(...words), '0')).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/drafters of ngram in --final-tap, got mine/),
    });
  });

  it.each(['0', '0.1', '.5', '1'])('take %s for a share', (text) => expect(share(text)).toBe(Number(text)));
  it.each(['', '-0.1', '1.1', '10%', '1e-2'])('do not take %j for a share', (text) =>
    expect(() => share(text)).toThrow(/0 to 1/),
  );
});
