import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type BenchServeOptions, benchServe } from '../../../src/bench/bench-serve.ts';
import { comparisonHtml, comparisonText, readResult } from '../../../src/bench/compare-results.ts';
import { htmlReport } from '../../../src/bench/html-report.ts';
import { type BenchResult, benchResultSchema } from '../../../src/bench/result-schema.ts';
import { ServerClient } from '../../../src/bench/server-client.ts';
import { textReport } from '../../../src/bench/text-report.ts';
import { verdictLines } from '../../../src/bench/verdict-lines.ts';
import { runBenchServe } from '../../../src/cli/bench-serve.ts';
import { benchServeCommand } from '../../../src/cli/bench-serve-options.ts';
import { readPrompts } from '../../../src/validate/recording/read-prompts.ts';
import { type AskedChat, type ChatPlan, ChatServer } from '../../support/chat-server.ts';
import { runCommand } from '../cli/run-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'blockdraft-bench-'));
const promptsFile = join(folder, 'prompts.jsonl');
writeFileSync(
  promptsFile,
  ['a', 'b', 'c', 'd']
    .map((id, i) => JSON.stringify({ id, category: i < 2 ? 'x' : 'y', prompt: `Question ${id}?` }))
    .join('\n'),
);
afterAll(() => rmSync(folder, { recursive: true }));

/** Plain answers take 3 deliveries of 40 ms, drafted ones one. */
function plan(asked: AskedChat): ChatPlan {
  const text = asked.messages.at(-1)?.content.slice(-11) ?? '';
  const words = [`The answer `, `to ${text} `, 'is yes.'];
  if (asked.drafter === 'none') return { pace: 40, deliveries: words, tokens: 9, drafts: null };
  return { pace: 40, deliveries: [words.join('')], tokens: 9, drafts: { 4: [0, 0, 1, 0, 1], 2: [1, 0, 0] } };
}

function optionsOf(server: ChatServer, given: Partial<BenchServeOptions> = {}): BenchServeOptions {
  return {
    client: new ServerClient(server.url, null),
    model: null,
    prompts: readPrompts(promptsFile, { limit: null, seed: 0 }),
    promptsFile,
    drafters: null,
    draftTokens: [],
    concurrency: [1, 2],
    temperatures: [0, 0.8],
    contextLengths: [0, 200],
    outputLength: 16,
    ignoreEos: false,
    seed: 5,
    repeats: 2,
    percentiles: [99],
    goals: { ttft: 100 },
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...given,
  };
}

describe('a measurement', () => {
  it('asks by turns, at each load, temperature and context, and tells what came of it', async () => {
    await using server = await ChatServer.start(plan);
    const progress: [number, number][] = [];
    const result = await benchServe(optionsOf(server, { onProgress: (...step) => progress.push(step) }));
    expect(benchResultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
    expect(result).toMatchObject({ complete: true, server: { model: 'm', version: '1.2.3' }, errors: [] });
    expect(progress.at(-1)).toEqual([48, 48]);
    expect(server.mostAtOnce).toBe(2);

    const names = result.points.map(({ axis, variant, max_concurrency, temperature, context_len }) =>
      [axis, variant, max_concurrency, temperature, context_len].join(' '),
    );
    expect(names.sort()).toEqual([
      'context good 1 0 200',
      'load good 1 0 0',
      'load good 2 0 0',
      'load none 1 0 0',
      'load none 2 0 0',
      'temperature good 1 0.8 0',
    ]);
    const [good] = result.points.filter(({ axis, variant }) => axis === 'load' && variant === 'good');
    expect(good).toMatchObject({
      completed: 8,
      failed: 0,
      total_input_tokens: 96,
      total_output_tokens: 72,
      // Each answer: 3 rounds, 2 + 4 tokens accepted of 10.
      spec_decode_num_drafts: 24,
      spec_decode_accepted_tokens: 48,
      spec_decode_draft_tokens: 80,
      spec_decode_per_position_acceptance_rates: [2 / 3, 2 / 3, 1 / 2, 1 / 2],
    });
    expect(good?.spec_decode_acceptance_length.value).toBeCloseTo(3, 10);
    expect(good?.times['median_ttft_ms']).toBeGreaterThanOrEqual(39);
    const [plain] = result.points.filter(({ axis, variant }) => axis === 'load' && variant === 'none');
    expect(plain?.times['median_itl_ms']).toBeGreaterThanOrEqual(39);
    // Three tokens in each delivery.
    expect(plain?.times['mean_itl_per_token_ms']).toBeCloseTo(plain!.times['mean_itl_ms']! / 3, 6);
    expect(plain?.spec_decode_acceptance_length.value).toBeNull();
    for (const { gain } of result.gains) expect(gain.value).toBeGreaterThan(1.3);
    expect(result.by_category.map(({ category }) => category)).toEqual(['x', 'y']);
    expect(result.lossless).toEqual({ compared: 16, differing: [] });
    expect(result.break_even).toEqual({ good: null });

    // Nobody profits of prompts that others have asked before, and everybody is asked with the same seed.
    const measured = server.asked.filter(({ cache_salt: salt }) => !salt?.startsWith('warm-up'));
    const salts = new Set(measured.map(({ cache_salt: salt }) => salt));
    expect(salts.size).toBe(12);
    expect(new Set(measured.map(({ seed }) => seed))).toEqual(new Set([5]));
    // One after the other in the first round, the other way round in the second.
    const order = measured.filter(({ cache_salt: salt }) => salt?.includes('load')).map(({ drafter }) => drafter);
    expect(order.slice(0, 8)).toEqual([...Array(4).fill('none'), ...Array(4).fill('good')]);
    expect(order.slice(16, 24)).toEqual([...Array(4).fill('good'), ...Array(4).fill('none')]);
    const long = measured.find(({ cache_salt: salt }) => salt?.includes('context'));
    expect(long?.messages.at(-1)?.content.length).toBeGreaterThan(800);
  });

  it('names draft lengths, and refuses what the server does not have', async () => {
    await using server = await ChatServer.start(plan);
    const given = { concurrency: [1], temperatures: [0], contextLengths: [0], repeats: 1 };
    const result = await benchServe(optionsOf(server, { ...given, drafters: ['bad', 'none'], draftTokens: [1, 3] }));
    expect(result.points.map(({ variant }) => variant)).toEqual(['bad@1', 'bad@3', 'none']);
    expect(server.asked.filter(({ drafter }) => drafter === 'bad').map(({ draft_tokens: tokens }) => tokens)).toContain(3);
    await expect(benchServe(optionsOf(server, { drafters: ['other'] }))).rejects.toMatchObject({
      message: expect.stringContaining('other'),
    });
    await expect(benchServe(optionsOf(server, { draftTokens: [5] }))).rejects.toMatchObject({
      message: expect.stringContaining('at most 4'),
    });
    await expect(benchServe(optionsOf(server, { model: 'x' }))).rejects.toMatchObject({ code: 'model_not_found' });
  });

  it('works on servers that list no drafters', async () => {
    await using server = await ChatServer.start((asked) => ({ ...plan(asked), drafts: null }), { drafters: false });
    const result = await benchServe(optionsOf(server, { concurrency: [1], repeats: 1 }));
    expect(result.points.every(({ variant }) => variant === 'server')).toBe(true);
    expect(server.asked.every((asked) => !('drafter' in asked) && !('cache_salt' in asked))).toBe(true);
    expect(server.asked.every(({ stream_options: { continuous_usage_stats: told } = {} }) => told === undefined)).toBe(true);
    expect(result.points[0]?.times['mean_itl_per_token_ms']).toBeNull();
    expect(result.gains).toEqual([]);
    expect(htmlReport(result)).toContain('Throughput by load');
    await expect(benchServe(optionsOf(server, { drafters: ['good'] }))).rejects.toMatchObject({ code: 'invalid_config' });
  });

  it('sees answers that differ from plain decoding, and requests that fail', async () => {
    await using server = await ChatServer.start((asked) => {
      const wanted = plan(asked);
      const content = asked.messages.at(-1)?.content ?? '';
      if (asked.drafter === 'good' && content.includes('b?')) return { ...wanted, deliveries: ['Something else.'] };
      if (content.includes('c?'))
        return { ...wanted, breakWith: 'data: {"error": {"message": "out of memory"}}\n\ndata: [DONE]\n\n' };
      return content.includes('d?') ? { ...wanted, breakWith: '' } : wanted;
    });
    const result = await benchServe(
      optionsOf(server, { concurrency: [1], repeats: 1, temperatures: [0], contextLengths: [0] }),
    );
    expect(result.points.map(({ completed, failed }) => [completed, failed])).toEqual([
      [2, 2],
      [2, 2],
    ]);
    expect(result.errors).toEqual(['out of memory', 'the stream did not end with [DONE]']);
    expect(result.lossless).toEqual({ compared: 2, differing: [{ prompt: 'b', variant: 'good at 1' }] });
    const words = verdictLines(result).join('\n');
    expect(words).toContain('NOT lossless: 1 of 2');
    expect(words).toContain('4 requests failed: out of memory');
  });

  it('that is interrupted reports what was done by then', async () => {
    await using server = await ChatServer.start(plan);
    const interrupted = new AbortController();
    const onProgress = (done: number) => {
      if (done === 14) interrupted.abort();
    };
    const result = await benchServe(optionsOf(server, { signal: interrupted.signal, onProgress }));
    expect(result.complete).toBe(false);
    expect(result.points.map(({ variant, max_concurrency }) => [variant, max_concurrency])).toEqual([
      ['none', 1],
      ['good', 1],
      ['none', 2],
    ]);
    expect(textReport(result)).toContain('Interrupted');
    expect(htmlReport(result)).toContain('Interrupted');
  });

  it('needs a server', async () => {
    const client = new ServerClient('http://127.0.0.1:1', null);
    await expect(client.facts(null)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('--base-url'),
    });
  });
});

describe('reports', () => {
  it('show gains, knees and all points, and escape what comes from outside', async () => {
    await using server = await ChatServer.start(plan);
    const measured = await benchServe(optionsOf(server, { repeats: 1 }));
    const result: BenchResult = { ...measured, server: { ...measured.server, model: '<m&m>' } };
    const html = htmlReport(result);
    expect(html).toContain('&lt;m&amp;m&gt;');
    expect(html).not.toContain('<m&m>');
    expect(html.match(/<svg/g)?.length).toBeGreaterThanOrEqual(10);
    expect(html).not.toMatch(/https?:\/\/(?!127\.0\.0\.1)/);
    expect(html).toMatch(/lossless<\/b>/);
    expect(html).toMatch(/knee, \d/);
    const text = textReport(result);
    expect(text).toMatch(/^1 +none /m);
    expect(text).toMatch(/good pays at every load measured/);
    expect(text).toMatch(/Lossless: 8 answers/);
  });

  it('have goodput where goals were given', async () => {
    await using server = await ChatServer.start(plan);
    const given = { concurrency: [2], repeats: 1, temperatures: [0], contextLengths: [0] };
    const result = await benchServe(optionsOf(server, { ...given, goals: { e2el: 60_000 } }));
    const [header = '', , row = ''] = textReport(result).split('\n').slice(2);
    const [columns = [], cells = []] = [header, row].map((line) => line.trim().split(/\s{2,}/));
    expect(cells[columns.indexOf('good/s')]).toBe(cells[columns.indexOf('req/s')]);
    expect(htmlReport(result)).toContain('<th>good/s</th>');
    const without = await benchServe(optionsOf(server, { ...given, goals: {} }));
    expect(textReport(without)).not.toContain('good/s');
  });

  it('have the percentiles that were asked for, and name the load that they are of', async () => {
    await using server = await ChatServer.start(plan);
    const given = { concurrency: [2], repeats: 1, temperatures: [0], contextLengths: [0], percentiles: [90, 99.9] };
    const result = await benchServe(optionsOf(server, given));
    const [header = '', , ...rows] = textReport(result).split('\n').slice(2);
    const columns = header.trim().split(/\s{2,}/);
    expect(columns).toEqual(expect.arrayContaining(['TTFT p90', 'TTFT p99.9', 'TPOT p90', 'TPOT p99.9']));
    const plain = rows
      .find((row) => / none /.test(row))!
      .trim()
      .split(/\s{2,}/);
    expect(Number(plain[columns.indexOf('TTFT p99.9')])).toBeGreaterThanOrEqual(39);
    const html = htmlReport(result);
    expect(html).toContain('<th>TPOT p99.9</th>');
    expect(html).toContain('Gain by category, 2 clients');
  });

  it('stand side by side', async () => {
    await using server = await ChatServer.start(plan);
    const given = { concurrency: [1], repeats: 1, temperatures: [0], contextLengths: [0] };
    const a = await benchServe(optionsOf(server, given));
    const slower: BenchResult = {
      ...a,
      settings: { ...a.settings, num_prompts: 3 },
      points: a.points.map((point) => ({
        ...point,
        output_throughput: point.output_throughput / 2,
        spec_decode_acceptance_length: { value: 1.5, low: 1.4, high: 1.6 },
      })),
    };
    const text = comparisonText(a, slower);
    expect(text).toMatch(/^good .* 0\.50 .* worse$/m);
    expect(text).toContain('Different numbers of prompts: 4 and 3');
    expect(comparisonHtml(a, slower)).toContain('<td>worse</td>');
    expect(() => comparisonText(a, { ...a, points: [] })).toThrow(/points in common/);
    const file = join(folder, 'result.json');
    writeFileSync(file, JSON.stringify(a));
    expect(readResult(file)).toEqual(a);
    // Its page does not take the place of the measurement's.
    writeFileSync(join(folder, 'bench-serve.html'), 'measured');
    const words = ['--compare', file, file, '--save-result', '--result-dir', folder];
    await runCommand(benchServeCommand().action(runBenchServe), ...words);
    expect(readFileSync(join(folder, 'bench-serve.html'), 'utf8')).toBe('measured');
    expect(readFileSync(join(folder, 'bench-compare.html'), 'utf8')).toContain('Two measurements');
    writeFileSync(file, '{}');
    // One line, whatever the number of things that are wrong.
    expect(() => readResult(file)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(/^.*--save-result, got .*: \w+: .*$/) }),
    );
  });
});
