import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import * as example from '../../docs/examples/bigram-drafter.ts';
import type { DrafterContext, DrafterModule } from '../../src/drafter/drafter-context.ts';
import { drafterFromModule } from '../../src/drafter/registry.ts';
import { hashedLogits } from '../support/scripted-logits.ts';
import { ScriptedTarget } from '../support/scripted-target.ts';
import { describeDrafterContract } from './drafter-contract.ts';

const EXAMPLE = fileURLToPath(new URL('../../docs/examples/bigram-drafter.ts', import.meta.url));
const GUIDE = new URL('../../docs/adding-a-drafter.md', import.meta.url);
const VOCAB = 16;

/** The example computes with plain JavaScript, and is made with nothing. */
const NO_CONTEXT = {} as DrafterContext;

describeDrafterContract({
  name: 'of the documentation, loaded from its path',
  async open() {
    const source = await drafterFromModule(EXAMPLE);
    return {
      drafter: await source.load(NO_CONTEXT),
      target: new ScriptedTarget({ vocabSize: VOCAB, nextLogits: hashedLogits({ vocabSize: VOCAB, seed: 5, memory: 2 }) }),
    };
  },
});

it('is named after its file and asks for no taps', async () => {
  const module: DrafterModule = example;
  expect(typeof module.createDrafter).toBe('function');
  expect(await drafterFromModule(EXAMPLE)).toMatchObject({ name: 'bigram-drafter', taps: [] });
});

it('stands in the guide as it is in its file', async () => {
  const guide = await readFile(GUIDE, 'utf8');
  const blocks = [...guide.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code);
  expect(blocks).toContain(await readFile(EXAMPLE, 'utf8'));
});
