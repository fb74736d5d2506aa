import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadChatTemplate, type RenderOptions } from '../../src/text/chat-template.ts';
import { readChatTemplateSource } from '../../src/text/chat-template-source.ts';
import { createDetokenizer } from '../../src/text/incremental-detokenizer.ts';
import { loadTokenizer, type Tokenizer } from '../../src/text/tokenizer.ts';
import qwen3 from './fixtures/tokenizer-qwen3/golden.json' with { type: 'json' };
import smollm2 from './fixtures/tokenizer-smollm2/golden.json' with { type: 'json' };

interface Golden {
  readonly tokenizer_sha256: string;
  readonly chat_template_sha256: string;
  readonly vocab_size: number;
  readonly strings: readonly { text: string; ids: number[]; decoded?: string; decoded_skip_special?: string }[];
  readonly streams: readonly { ids: number[]; skip_special_tokens: boolean; deltas: string[]; text: string }[];
  readonly chats: readonly {
    name: string;
    messages: { role: string }[];
    options: Record<string, unknown>;
    text: string;
    ids: number[];
  }[];
}

function renderOptions({
  add_generation_prompt,
  continue_final_message,
  tools,
  ...variables
}: Record<string, unknown>): RenderOptions {
  return {
    addGenerationPrompt: add_generation_prompt === true,
    continueFinalMessage: continue_final_message === true,
    ...(tools === undefined ? {} : { tools: tools as object[] }),
    variables,
  };
}

const smollm2Folder = join(import.meta.dirname, '../../models/smollm2-135m-instruct');
const qwen3Folder = process.env['QWEN3_TOKENIZER_DIR'];

function tokenizerSuite(folder: string, golden: Golden): void {
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    tokenizer = await loadTokenizer(folder);
  });

  it('is the tokenizer that the fixture was made with', () => {
    expect(tokenizer.sha256).toBe(golden.tokenizer_sha256);
    expect(tokenizer.vocabSize).toBe(golden.vocab_size);
  });

  it.each(golden.strings)('encodes and decodes $text', ({ text, ids, decoded, decoded_skip_special }) => {
    expect(tokenizer.encode(text, { addSpecialTokens: false })).toEqual(ids);
    expect(tokenizer.decode(ids, { skipSpecialTokens: false })).toBe(decoded ?? text);
    expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe(decoded_skip_special ?? text);
  });

  it.each(golden.streams)('streams $ids, skipping special tokens: $skip_special_tokens', (stream) => {
    const detokenizer = createDetokenizer(tokenizer, { skipSpecialTokens: stream.skip_special_tokens });
    const deltas = stream.ids.map((id) => detokenizer.push(id));
    expect(deltas).toEqual(stream.deltas);
    expect(deltas.join('') + detokenizer.flush()).toBe(stream.text);
  });

  it.each(golden.chats)('encodes the prompt of: $name', ({ text, ids }) => {
    expect(tokenizer.encode(text, { addSpecialTokens: false })).toEqual(ids);
  });
}

describe('tokenizer of SmolLM2', () => tokenizerSuite(smollm2Folder, smollm2));

// Qwen3's tokenizer is not part of the repository: its fixture says how to get one and name its folder.
describe.skipIf(qwen3Folder === undefined)('tokenizer of Qwen3', () => tokenizerSuite(qwen3Folder ?? '', qwen3));

describe.each<{ name: string; folder: string; golden: Golden }>([
  { name: 'SmolLM2', folder: smollm2Folder, golden: smollm2 },
  { name: 'Qwen3', folder: join(import.meta.dirname, 'fixtures/tokenizer-qwen3'), golden: qwen3 },
])('chat template of $name', ({ folder, golden }) => {
  it('is the template that the fixture was made with', async () => {
    const source = (await readChatTemplateSource(folder)).templates.get('default')!;
    expect(createHash('sha256').update(source).digest('hex')).toBe(golden.chat_template_sha256);
  });

  it.each(golden.chats)('renders: $name', async ({ messages, options, text }) => {
    const template = await loadChatTemplate(folder);
    expect(template.render(messages, renderOptions(options))).toBe(text);
  });
});
