import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tokenizerDifference } from '../../../src/drafter/draft-model/tokenizer-difference.ts';
import { temporaryFolder } from '../checkpoint/checkpoint-fixture.ts';

const BPE = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] };
const ADDED = [{ id: 3, content: '<|end|>', special: true }];

async function folderOf(tokenizer: object): Promise<string> {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  return folder;
}

async function difference(own: object, other: object): Promise<string | null> {
  return tokenizerDifference(await folderOf(own), await folderOf(other));
}

describe('two tokenizers', () => {
  const target = { model: BPE, added_tokens: ADDED };

  it('are the same where ids and merges are, whatever else differs', async () => {
    expect(await difference(target, target)).toBeNull();
    expect(await difference({ ...target, truncation: { max_length: 1 } }, target)).toBeNull();
    const added = { model: { ...BPE, vocab: { ...BPE.vocab, '<|end|>': 3 } }, added_tokens: [] };
    expect(await difference(added, target)).toBeNull();
    const unigram = {
      model: {
        type: 'Unigram',
        vocab: [
          ['a', 0],
          ['b', -1],
        ],
      },
    };
    expect(await difference(unigram, { ...unigram, padding: null })).toBeNull();
  });

  it.each([
    {
      title: 'another token',
      own: { ...target, model: { ...BPE, vocab: { a: 0, b: 1, ba: 2 } } },
      message: /token 2 of its tokenizer is "ba", of the target's "ab"/,
    },
    {
      title: 'another special token',
      own: { ...target, added_tokens: [{ id: 3, content: '<|x|>' }] },
      message: /token 3 .*"<\|x\|>".*"<\|end\|>"/,
    },
    { title: 'fewer tokens', own: { model: BPE }, message: /token 3 of its tokenizer is none/ },
    {
      title: 'more tokens',
      own: { ...target, added_tokens: [...ADDED, { id: 4, content: 'c' }] },
      message: /token 4 .*"c", of the target's none/,
    },
    { title: 'other merges', own: { ...target, model: { ...BPE, merges: [] } }, message: /other merges/ },
  ])('differ by $title, which is named', async ({ own, message }) => {
    expect(await difference(own, target)).toMatch(message);
  });

  it('cannot be compared where one cannot be read', async () => {
    await expect(tokenizerDifference(await temporaryFolder(), await folderOf(target))).rejects.toMatchObject({
      code: 'invalid_checkpoint',
    });
    await expect(difference({ model: 3 }, target)).rejects.toMatchObject({ code: 'invalid_checkpoint' });
  });
});
