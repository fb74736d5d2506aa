/** Validation of layouts that no drafter of the testbed has, made from its healthy one. */
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { CPU } from '../../src/onnx/device.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { readPrompts } from '../../src/validate/recording/read-prompts.ts';
import { type Validation, validate } from '../../src/validate/validate.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { TEST_THREADS } from '../support/runtime.ts';
import { VariedDrafter } from '../support/vary-drafter.ts';
import { TESTBED } from './testbed-probe.ts';

const PROMPTS = join(TESTBED, 'prompts.jsonl');
const BLOCK = 8;
const temporary = new TemporaryFolder();

afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

async function validated(name: string, change: (drafter: VariedDrafter) => void): Promise<Validation> {
  const drafter = new VariedDrafter(join(TESTBED, 'drafter'));
  change(drafter);
  return validate({
    target: join(TESTBED, 'target'),
    drafter: drafter.write(join(temporary.path, name)),
    prompts: readPrompts(PROMPTS, { limit: 8, seed: 0 }),
    promptsFile: PROMPTS,
    weights: 'f32',
    device: CPU,
    threads: TEST_THREADS,
    maxContext: null,
    cacheDir: join(temporary.path, 'weights'),
    concurrency: 8,
    maxTokens: 40,
    seed: 0,
    temperatures: [0, 0.8],
    draftTokens: null,
    speedPrompts: 1,
    speedRepeats: 1,
    out: null,
    resume: false,
    thresholds: {},
  });
}

const drafts = ({ store }: Validation) => store.served(0).flatMap(({ rounds }) => rounds.map(({ draft }) => draft));

it('a drafter of DFlash 2 whose new parts change nothing has the figures of the one that it was made from', async () => {
  const plain = await validated('plain', () => undefined);
  const second = await validated('second', (drafter) => drafter.declareAsDflash2());
  expect(drafts(second)).toEqual(drafts(plain));
  expect(second.report.overall).toEqual(plain.report.overall);
  expect(second.report.forced.accuracyBySlot).toEqual(plain.report.forced.accuracyBySlot);
  expect(second.report.lossless).toEqual(plain.report.lossless);
  expect(second.report.lossless.differing).toEqual([]);
});

it('a drafter that drafts from the anchor’s slot on drafts as many tokens as its block has slots', async () => {
  const { report, store } = await validated('from-anchor', (drafter) => {
    drafter.declareAsSpeculators({ sample_from_anchor: true });
  });
  expect(report.lossless.differing).toEqual([]);
  expect(report.settings.maxDraftTokens).toBe(BLOCK);
  expect(report.overall.perPositionProposed).toHaveLength(BLOCK);
  expect(Math.max(...store.served(0).flatMap(({ rounds }) => rounds.map(({ draft }) => draft.length)))).toBe(BLOCK);
  for (const { anchors } of store.forced(0)) {
    for (const [first] of Object.values(anchors)) expect(first?.draft).toHaveLength(BLOCK);
  }
  // Serving shows it the same as plain decoding does.
  expect(report.consistency.sameDrafts).toBe(1);
});
