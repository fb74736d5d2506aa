/** Whether two models read the same tokens: a drafter's ids mean something to its target only then. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../checkpoint/read-json.ts';

const FILE = 'tokenizer.json';

const tokenizerSchema = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.number().int(), content: z.string() })).nullish(),
  model: z.looseObject({
    type: z.string().nullish(),
    /** Of byte-pair encodings and word pieces by token, of unigram models a list. */
    vocab: z.union([z.record(z.string(), z.number().int()), z.array(z.tuple([z.string(), z.number()]))]).nullish(),
    merges: z.unknown().optional(),
  }),
});

/**
 * Where the tokenizers of two folders first differ, in words with both values; null when every id is the same token and
 * text is split by the same merges.
 * @throws AppError `invalid_checkpoint` when one of them cannot be read
 */
export async function tokenizerDifference(drafterFolder: string, targetFolder: string): Promise<string | null> {
  const files = [join(drafterFolder, FILE), join(targetFolder, FILE)] as const;
  const [drafter, target] = await Promise.all(files.map((file) => readFile(file).catch(() => null)));
  if (drafter && target && drafter.equals(target)) return null;
  const [own, other] = files.map((file) => readJson(file, tokenizerSchema)) as [Definition, Definition];
  const [ownTokens, otherTokens] = [tokensOf(own), tokensOf(other)];
  for (const id of [...new Set([...ownTokens.keys(), ...otherTokens.keys()])].sort((a, b) => a - b)) {
    const [mine, theirs] = [ownTokens.get(id), otherTokens.get(id)];
    if (mine !== theirs) return `token ${id} of its tokenizer is ${shown(mine)}, of the target's ${shown(theirs)}`;
  }
  const [ownMerges, otherMerges] = [JSON.stringify(own.model.merges), JSON.stringify(other.model.merges)];
  return ownMerges === otherMerges ? null : "its tokenizer has the target's tokens and other merges";
}

type Definition = z.infer<typeof tokenizerSchema>;

function tokensOf({ model, added_tokens: added }: Definition): Map<number, string> {
  const { vocab } = model;
  const tokens = Array.isArray(vocab)
    ? new Map(vocab.map(([token], id) => [id, token]))
    : new Map(Object.entries(vocab ?? {}).map(([token, id]) => [id, token]));
  for (const { id, content } of added ?? []) tokens.set(id, content);
  return tokens;
}

function shown(token: string | undefined): string {
  return token === undefined ? 'none' : JSON.stringify(token);
}
