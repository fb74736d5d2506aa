import { GREEDY } from '../../src/core/sampling-params.ts';
import { DraftModelDrafter } from '../../src/drafter/draft-model/draft-model-drafter.ts';
import type { Drafter } from '../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../src/drafter/ngram/ngram-drafter.ts';
import { NoneDrafter } from '../../src/drafter/none/none-drafter.ts';
import { LiarDrafter } from '../support/liar-drafter.ts';
import { OracleDrafter } from '../support/oracle-drafter.ts';
import { hashedLogits, nextToken } from '../support/scripted-logits.ts';
import { ScriptedTarget } from '../support/scripted-target.ts';
import { ThrowingDrafter } from '../support/throwing-drafter.ts';
import { WrongFromDrafter } from '../support/wrong-from-drafter.ts';
import { scriptedDecoder } from '../unit/drafter/scripted-decoder.ts';
import { DRAFTER_RULES, type DrafterRule, describeDrafterContract } from './drafter-contract.ts';

const VOCAB = 16;
const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 3, memory: 6 });
const knowing = { next: nextToken(nextLogits, GREEDY), vocabSize: VOCAB };

function contract(name: string, drafter: () => Drafter, skips: Partial<Record<DrafterRule, string>> = {}): void {
  const open = async () => ({ drafter: drafter(), target: new ScriptedTarget({ vocabSize: VOCAB, nextLogits }) });
  describeDrafterContract({ name, open, skips });
}

contract('none', () => new NoneDrafter(), { 'drafts something for a text that repeats itself': 'it never drafts' });
contract('ngram', () => new NgramDrafter());
contract('ngram with short runs and drafts', () => new NgramDrafter({ maxDraftTokens: 3, maxMatch: 2, minMatch: 1 }));
contract('draft-model', () => new DraftModelDrafter(scriptedDecoder(5)));
contract('draft-model that takes few rows and sequences a step', () => {
  return new DraftModelDrafter(scriptedDecoder(5, { maxRows: 3, maxSequences: 2 }), 3);
});
contract('oracle', () => new OracleDrafter(knowing));
contract('liar', () => new LiarDrafter(knowing));
contract('wrong-from', () => new WrongFromDrafter({ ...knowing, wrongFrom: 2 }));

const CAN_BE_DISPOSED_OF = 'can be disposed of twice, as can its sequences';
const throws = Object.fromEntries(
  DRAFTER_RULES.filter((rule) => rule !== CAN_BE_DISPOSED_OF).map((rule) => [rule, 'it throws instead of drafting']),
);
contract('throwing, after one draft', () => new ThrowingDrafter('propose', 1), throws);
