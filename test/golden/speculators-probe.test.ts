/** A diagnosis runs drafters of speculators' layout in a graph of its own: with their own tables, and heads of chosen tokens. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import { readDflashConfig } from '../../src/drafter/dflash/dflash-config.ts';
import { borrowTarget } from '../../src/engine/borrow-target.ts';
import { readModelConfig } from '../../src/target/hf-config.ts';
import { declaredAssumption } from '../../src/validate/probe/assumption.ts';
import { DrafterProbe } from '../../src/validate/probe/drafter-probe.ts';
import { FeatureSource } from '../../src/validate/probe/feature-source.ts';
import { TargetHead } from '../../src/validate/probe/target-head.ts';
import { recordAnswers } from '../../src/validate/recording/record-answers.ts';
import { loadTestTarget, TemporaryFolder } from '../support/load-test-target.ts';
import { testRuntime } from '../support/runtime.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

interface Golden {
  readonly input_ids: readonly TokenId[];
  readonly anchors: readonly number[];
  readonly draft_ids: readonly (readonly TokenId[])[];
}

it.each(['speculators-full', 'speculators-reduced'])('%s is diagnosed on the drafts of the reference', async (name) => {
  const golden: Golden = JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8'));
  await using temporary = new TemporaryFolder();
  const folder = join(FIXTURES, 'dflash-target');
  const taps = readModelConfig(folder).spec.layers.map((_, layer) => layer);
  const loaded = await loadTestTarget({ folder, cacheDir: temporary.path, taps });
  const { target, finalNorm } = loaded;
  const config = readDflashConfig(join(FIXTURES, name), { targetLayers: target.facts.layers });
  const borrowed = borrowTarget(loaded);
  {
    const answerStart = Math.min(...golden.anchors);
    const [sequence] = await recordAnswers({
      target,
      maxTokens: golden.input_ids.length,
      sequences: [
        {
          id: name,
          category: 'golden',
          promptTokens: golden.input_ids.slice(0, answerStart),
          answer: golden.input_ids.slice(answerStart),
        },
      ],
    });
    using head = await TargetHead.open(testRuntime(), borrowed, finalNorm);
    using probe = await DrafterProbe.open({
      runtime: testRuntime(),
      folder: join(FIXTURES, name),
      config,
      format: 'f32',
      target: borrowed,
      features: new FeatureSource(head, config.targetHidden),
      cacheDir: temporary.path,
    });
    const { slots, ids } = await probe.run(sequence!, declaredAssumption(config, target.facts.layers));
    const drafts = golden.anchors.map((anchor) => {
      const row = (anchor - answerStart) * slots;
      return [...ids.slice(row + 1, row + slots)];
    });
    expect(drafts).toEqual(golden.draft_ids);
  }
  await target[Symbol.asyncDispose]();
});
