/** The small trained pair, opened as the server opens it: real models that answer in milliseconds. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type OpenEngineOptions, type OpenedEngine, openEngine } from '../../src/engine/open-engine.ts';
import { CPU } from '../../src/onnx/device.ts';
import { TEST_THREADS } from './runtime.ts';

const TESTBED = resolve(import.meta.dirname, '../golden/fixtures/testbed');
export const TESTBED_TARGET = resolve(TESTBED, 'target');
export const TESTBED_DRAFTER = resolve(TESTBED, 'drafter');

export interface TestbedPrompt {
  readonly id: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

export function testbedPrompts(): TestbedPrompt[] {
  const lines = readFileSync(resolve(TESTBED, 'prompts.jsonl'), 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as TestbedPrompt);
}

/**
 * @param options anything but the models
 * @param prepared whether what several sequences need is loaded and measured
 */
export async function openTestbed(
  options: Partial<OpenEngineOptions> & { readonly cacheDir: string },
  prepared = true,
): Promise<OpenedEngine> {
  const opened = await openEngine({
    target: TESTBED_TARGET,
    drafters: [`dflash=${TESTBED_DRAFTER}`, 'ngram'],
    drafterModules: [],
    draftTokens: 7,
    weights: 'f32',
    device: CPU,
    threads: TEST_THREADS,
    maxContext: null,
    maxSequences: 4,
    maxRows: 256,
    maxWaiting: 64,
    servedModelName: 'testbed',
    observers: [],
    ...options,
  });
  if (prepared) await opened.warmUp();
  return opened;
}
