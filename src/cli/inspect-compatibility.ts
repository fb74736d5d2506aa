/** Whether a drafter, or a small model as one, fits a target: every fact with both values. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { resolveWeight } from '../checkpoint/resolve-weight.ts';
import { AppError } from '../core/app-error.ts';
import { checkDflash } from '../drafter/dflash/check-checkpoint.ts';
import { comparedFacts } from '../drafter/dflash/target-mismatch.ts';
import { tokenizerDifference } from '../drafter/draft-model/tokenizer-difference.ts';
import { refuseUnclaimedTensors } from '../target/unclaimed-tensors.ts';
import { type DecoderFolder, type ModelFolder, targetShape } from './inspect-folder.ts';

export interface ComparedFactOfTwo {
  readonly name: string;
  readonly drafter: number | string;
  readonly target: number | string;
  readonly agrees: boolean;
}

export interface ComparedWithTarget {
  readonly target: string;
  readonly facts: readonly ComparedFactOfTwo[];
  /** Why they do not fit; null when they do. */
  readonly problem: string | null;
}

/** @param allowUnclaimed tensors that nothing uses are no problem */
export async function compareWithTarget(
  opened: ModelFolder,
  target: DecoderFolder,
  allowUnclaimed: boolean,
): Promise<ComparedWithTarget> {
  const { folder: targetFolder } = target;
  const { spec } = target.config;
  if (opened.role === 'dflash') {
    const shape = targetShape(target.config);
    const { config, own, checkpoint } = opened;
    const [, width = 0] = checkpoint.has('fc.weight') ? checkpoint.tensor('fc.weight').shape : [];
    const facts = [
      ...comparedFacts(config, shape, own).map((fact) => ({ ...fact, agrees: fact.drafter === fact.target })),
      {
        name: `width of fc (${config.taps.length} taps)`,
        drafter: width,
        target: config.taps.length * spec.hidden,
        agrees: width === config.taps.length * spec.hidden,
      },
      {
        name: 'mask token, below vocab_size',
        drafter: config.maskTokenId,
        target: spec.vocab,
        agrees: config.maskTokenId < spec.vocab,
      },
    ];
    const problem = await messageOf(() => checkDflash(config, checkpoint, shape, allowUnclaimed));
    return { target: targetFolder, facts, problem };
  }
  const own = opened.config.spec;
  const tokenizers = [opened.folder, targetFolder].every((folder) => existsSync(join(folder, 'tokenizer.json')));
  const difference = tokenizers ? await tokenizerDifference(opened.folder, targetFolder) : 'a tokenizer.json is absent';
  const facts = [
    { name: 'vocab_size', drafter: own.vocab, target: spec.vocab, agrees: own.vocab === spec.vocab },
    {
      name: 'tokenizer.json',
      drafter: difference === null ? 'same tokens' : 'its own',
      target: difference === null ? 'same tokens' : 'its own',
      agrees: difference === null,
    },
    {
      name: 'layers with a recurrent state',
      drafter: own.layers.filter(({ mixer }) => mixer !== 'attention').length,
      target: 'any number',
      agrees: own.gatedDelta === null,
    },
  ];
  const unusable = await messageOf(() => {
    if (!allowUnclaimed) refuseUnclaimedTensors(opened.checkpoint, own, opened.folder);
    for (const weight of opened.plan) resolveWeight(opened.checkpoint, weight, 'f32', 'f32');
  });
  return { target: targetFolder, facts, problem: difference ?? disagreement(facts) ?? unusable };
}

function disagreement(facts: readonly ComparedFactOfTwo[]): string | null {
  const fact = facts.find(({ agrees }) => !agrees);
  return fact === undefined ? null : `its ${fact.name} is ${fact.drafter}, the target's is ${fact.target}`;
}

/** What is wrong, in the words in which it is refused when it is loaded. */
async function messageOf(check: () => unknown): Promise<string | null> {
  try {
    await check();
    return null;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}
