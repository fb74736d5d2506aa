/** The small trained pair, opened as the server opens it: real models that answer in milliseconds. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { FinishEvent } from '../../src/core/decode-event.ts';
import { GREEDY } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
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

export interface GreedyAnswer extends FinishEvent {
  readonly tokens: readonly TokenId[];
}

/** What the default drafter's sequence answers to a prompt, whatever ends it but an end-of-sequence token. */
export async function greedyAnswer(
  { engine }: Pick<OpenedEngine, 'engine'>,
  { id, messages }: TestbedPrompt,
  { maxTokens, behind = '' }: { readonly maxTokens: number; readonly behind?: string },
): Promise<GreedyAnswer> {
  const request: GenerateRequest = {
    id: `${id} ${behind}`,
    promptTokens: engine.text.encode(engine.text.renderChat(messages) + behind, { addSpecialTokens: false }),
    sampling: GREEDY,
    maxTokens,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: true,
    skipSpecialTokens: true,
    drafter: null,
    draftTokens: null,
  };
  const tokens: TokenId[] = [];
  for await (const event of engine.generate(request, new AbortController().signal)) {
    if (event.type === 'finish') return { ...event, tokens };
    tokens.push(...event.tokens);
  }
  throw new Error('Expected an end, got none');
}
