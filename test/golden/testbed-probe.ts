/** The testbed's target with its recorded answers, and drafters to run on them. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readDflashConfig } from '../../src/drafter/dflash/dflash-config.ts';
import { finalNormWeight } from '../../src/target/decoder-spec.ts';
import { readModelConfig } from '../../src/target/hf-config.ts';
import { loadTarget } from '../../src/target/load-target.ts';
import { loadChatTemplate } from '../../src/text/chat-template.ts';
import { loadTokenizer } from '../../src/text/tokenizer.ts';
import { DrafterProbe } from '../../src/validate/probe/drafter-probe.ts';
import { FeatureSource } from '../../src/validate/probe/feature-source.ts';
import { TargetHead } from '../../src/validate/probe/target-head.ts';
import { readPrompts } from '../../src/validate/recording/read-prompts.ts';
import { recordAnswers } from '../../src/validate/recording/record-answers.ts';
import { testRuntime } from '../support/runtime.ts';

export const TESTBED = resolve(import.meta.dirname, 'fixtures/testbed');
/** The measurements of the reference were cut here. */
export const MAX_TOKENS = 128;

export async function openTestbed() {
  const runtime = testRuntime();
  const folder = join(TESTBED, 'target');
  const cacheDir = mkdtempSync(join(tmpdir(), 'testbed-'));
  const config = readModelConfig(folder);
  const layers = config.spec.layers.length;
  const loaded = await loadTarget({
    runtime,
    device: { kind: 'cpu' },
    folder,
    config,
    format: 'f32',
    maxContext: 512,
    maxSequences: 8,
    maxRows: 256,
    taps: Array.from({ length: layers }, (_, layer) => layer),
    cacheDir,
  });
  const { target, checkpoint, embedding, head: headSpec } = loaded;
  const borrowed = {
    ...target.facts,
    maxSequences: 8,
    checkpoint,
    embedding,
    head: headSpec,
    weight: (name: string) => target.weights.get(name),
    prepacked: target.prepacked,
  };
  const [tokenizer, template] = await Promise.all([loadTokenizer(folder), loadChatTemplate(folder)]);
  const prompts = readPrompts(join(TESTBED, 'prompts.jsonl'), { limit: null, seed: 0 });
  const sequences = await recordAnswers({
    target,
    maxTokens: MAX_TOKENS,
    sequences: prompts.map((prompt) => ({
      ...prompt,
      promptTokens: tokenizer.encode(template.render(prompt.messages, { addGenerationPrompt: true }), {
        addSpecialTokens: false,
      }),
      answer: null,
    })),
  });
  const head = await TargetHead.open(runtime, borrowed, {
    weight: finalNormWeight(config.spec),
    epsilon: config.spec.normEpsilon,
  });
  const features = new FeatureSource(head, config.spec.hidden);
  return {
    sequences,
    head,
    layers,
    openProbe(drafter: string) {
      const path = join(TESTBED, drafter);
      const dflash = readDflashConfig(path, { targetLayers: layers });
      return DrafterProbe.open({ runtime, folder: path, config: dflash, format: 'f32', target: borrowed, features, cacheDir });
    },
    async [Symbol.asyncDispose]() {
      head[Symbol.dispose]();
      await target[Symbol.asyncDispose]();
    },
  };
}

export type Testbed = Awaited<ReturnType<typeof openTestbed>>;
