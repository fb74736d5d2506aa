/** Validation of the trained pair of the testbed: its figures are known from the reference. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CPU } from '../../src/onnx/device.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { compare } from '../../src/validate/compare/compare.ts';
import { readPrompts, takeEvenly } from '../../src/validate/recording/read-prompts.ts';
import { reportSchema } from '../../src/validate/report/report-schema.ts';
import { type TraceLine, traceLines } from '../../src/validate/trace/trace-lines.ts';
import { type ValidateOptions, type Validation, validate } from '../../src/validate/validate.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { TEST_THREADS } from '../support/runtime.ts';
import { VariedDrafter } from '../support/vary-drafter.ts';
import expected from './fixtures/testbed-acceptance/expected.json' with { type: 'json' };

const FOLDER = join(import.meta.dirname, 'fixtures', 'testbed');
const TARGET = join(FOLDER, 'target');
const DRAFTER = join(FOLDER, 'drafter');
const PROMPTS = join(FOLDER, 'prompts.jsonl');
/** Of the figures in the fixture. */
const DIGITS = 4;

const temporary = new TemporaryFolder();

const common = () => ({
  target: TARGET,
  promptsFile: PROMPTS,
  weights: 'f32' as const,
  device: CPU,
  threads: TEST_THREADS,
  maxContext: null,
  cacheDir: join(temporary.path, 'weights'),
  concurrency: 8,
  /** More than any answer needs. */
  maxTokens: 128,
  seed: 0,
});

function options(limit: number | null, changes: Partial<ValidateOptions> = {}): ValidateOptions {
  return {
    ...common(),
    drafter: DRAFTER,
    prompts: readPrompts(PROMPTS, { limit, seed: 0 }),
    temperatures: [0],
    draftTokens: null,
    speedPrompts: 0,
    speedRepeats: 1,
    out: null,
    resume: false,
    thresholds: {},
    ...changes,
  };
}

let whole: Validation;

beforeAll(async () => {
  whole = await validate(options(null));
}, 120_000);

afterAll(async () => {
  await temporary[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

describe('validating the trained drafter', () => {
  it('has the reference’s acceptance, over all and by category', () => {
    const { overall, categories } = whole.report;
    expect(overall.rounds).toBe(expected.as_served.cycles);
    expect(overall.emittedPerStep.value).toBeCloseTo(expected.as_served.tau, DIGITS);
    expect(Object.keys(categories).sort()).toEqual(Object.keys(expected.as_served.tau_by_category).sort());
    for (const [category, tau] of Object.entries(expected.as_served.tau_by_category)) {
      expect(categories[category]?.emittedPerStep.value, category).toBeCloseTo(tau, DIGITS);
    }
  });

  it('has the reference’s acceptance by slot, served and walked over teacher forcing', () => {
    const { overall, consistency } = whole.report;
    for (const [slot, share] of expected.as_served.acceptance_by_position.entries()) {
      expect(overall.perPositionInside[slot]?.value).toBeCloseTo(share, DIGITS);
      expect(consistency.forcedBySlot[slot]?.value).toBeCloseTo(share, DIGITS);
    }
  });

  it('has an interval as wide as the reference’s standard error over prompts says', () => {
    const { low, high } = whole.report.overall.emittedPerStep;
    // A bootstrap of the reference gave a standard error of 0.19.
    expect((high! - low!) / (2 * 1.96)).toBeGreaterThan(0.15);
    expect((high! - low!) / (2 * 1.96)).toBeLessThan(0.23);
  });

  it('serves what teacher forcing predicts, round by round', () => {
    const { consistency, lossless } = whole.report;
    expect(consistency.gap.value).toBe(0);
    expect(consistency.sameDrafts).toBe(1);
    expect(lossless).toEqual({ compared: 80, differing: [] });
  });

  it('has identities between its figures', () => {
    const { overall, forced, endings, rejections } = whole.report;
    // Every draft is whole here, so the length is 1 and the sum over slots (up to what ends of answers cut off).
    const sum = overall.perPosition.reduce((total, { value }) => total + value!, 0);
    expect(overall.meanAcceptanceLength.value).toBeCloseTo(1 + sum, 10);
    expect(forced.accuracyBySlot[0]?.value).toBeCloseTo(forced.coverage![0]!.bySlot[0]!.value!, 10);
    expect(forced.expectedAcceptanceLength.value).toBeGreaterThan(forced.streak.value!);
    expect(endings.rejected).toBe(rejections.rejected);
    expect(endings.rejected + endings.whole + endings.answerEnded + endings.noDraft).toBe(overall.rounds);
    for (const { value } of forced.overlapBySlot!) {
      expect(value).toBeGreaterThan(0.5);
      expect(value).toBeLessThan(1);
    }
  });

  it('has a trace that adds up to the answers', async () => {
    const lines: TraceLine[] = [];
    for await (const line of traceLines(TARGET, whole.store.served(0))) lines.push(JSON.parse(line));
    expect(lines).toHaveLength(whole.report.overall.rounds);
    const golden = expected.golden[0]!;
    const own = lines.filter(({ id }) => id === golden.id);
    // The reference stopped at a limit behind the last of these.
    const rounds = golden.accepted.length - 1;
    expect(own.slice(0, rounds).map(({ drafted }) => drafted.filter(({ outcome }) => outcome === 'accepted').length)).toEqual(
      golden.accepted.slice(0, rounds),
    );
    expect(own[0]?.anchor.token).toBe(golden.greedy_ids[0]);
    const emitted = [own[0]!.anchor, ...own.flatMap((line) => line.emitted)];
    expect(emitted.map(({ token }) => token)).toEqual(golden.greedy_ids);
    expect(emitted.map(({ text }) => text).join('')).toBe(golden.text);
    for (const { drafted, rejectedRank } of own) {
      expect(drafted.some(({ outcome }) => outcome === 'rejected')).toBe(rejectedRank !== null);
    }
  });
});

describe('other ways to validate', () => {
  it('loses nothing when answers are sampled, and accepts less', async () => {
    const { report } = await validate(options(16, { temperatures: [0, 1], maxTokens: 48 }));
    expect(report.lossless).toEqual({ compared: 32, differing: [] });
    const [greedy, sampled] = report.byTemperature;
    expect(sampled?.acceptance.emittedPerStep.value).toBeLessThan(greedy!.acceptance.emittedPerStep.value!);
  });

  it('times plain and speculative decoding, and predicts from costs', async () => {
    const { report } = await validate(options(8, { speedPrompts: 2, speedRepeats: 2, maxTokens: 32 }));
    const speed = reportSchema.parse(report).speed!;
    expect(speed).toMatchObject({ prompts: 2, repeats: 2 });
    expect(speed.byDraftLength.map(({ draftTokens }) => draftTokens)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    for (const { acceptanceLength, breakEven, speedUp } of speed.byDraftLength) {
      expect(speedUp).toBeCloseTo(acceptanceLength / breakEven, 10);
    }
    expect(speed.byDraftLength.at(-1)?.acceptanceLength).toBeCloseTo(report.consistency.forcedLength.value!, 10);
    expect(report.lossless.compared).toBe(10);
  });

  it('times what it predicts from: answers drawn at the first temperature', async () => {
    const { report, store } = await validate(options(4, { temperatures: [1, 0], speedPrompts: 3, maxTokens: 96 }));
    expect(report.lossless).toEqual({ compared: 2 * 4 + 3, differing: [] });
    const timed = Object.values(report.speed!.byCategory);
    expect(report.speed).toMatchObject({ temperature: 1, prompts: 3 });
    const ids = takeEvenly(readPrompts(PROMPTS, { limit: 4, seed: 0 }), 3).map(({ id }) => id);
    const tokens = (temperature: number) =>
      store.served(temperature).reduce((sum, answer) => sum + (ids.includes(answer.id) ? answer.tokens.length : 0), 0);
    expect(timed.reduce((sum, category) => sum + category.tokens, 0)).toBe(tokens(1));
    expect(tokens(0)).not.toBe(tokens(1));
  });

  it('keeps what was timed when it is interrupted there', async () => {
    const interrupt = new AbortController();
    const { report } = await validate(
      options(4, {
        ...{ speedPrompts: 4, maxTokens: 8, signal: interrupt.signal },
        onStage: (stage, done) => stage === 'timing' && done === 2 && interrupt.abort(),
      }),
    );
    expect(report).toMatchObject({ complete: false, speed: { prompts: 2 }, lossless: { compared: 4 + 2 } });
  });

  it('gives a partial report when it is interrupted, and the whole one when it goes on', async () => {
    const out = join(temporary.path, 'out');
    const interrupt = new AbortController();
    const prompts = { concurrency: 2, maxTokens: 32, out };
    const { report: partial } = await validate(
      options(24, {
        ...prompts,
        signal: interrupt.signal,
        onStage: (_, done) => done === 20 && interrupt.abort(),
      }),
    );
    expect(partial.complete).toBe(false);
    expect(partial.overall.prompts).toBeLessThan(24);
    const progress: number[] = [];
    const { report } = await validate(options(24, { ...prompts, resume: true, onStage: (_, done) => progress.push(done) }));
    expect(progress).toHaveLength(48);
    const { report: atOnce } = await validate(options(24, { concurrency: 2, maxTokens: 32 }));
    const figures = ({ provenance: _, ...rest }: typeof report) => rest;
    expect(figures(report)).toEqual(figures(atOnce));
    expect(readFileSync(join(out, 'answers.jsonl'), 'utf8').trim().split('\n')).toHaveLength(1 + 48);
  });
});

describe('answers that are gone on with', () => {
  const out = () => join(temporary.path, 'resumed');

  it('are those of the prompts that are asked for now, drawn alike whichever others there are', async () => {
    const few = { temperatures: [1], maxTokens: 16, out: out() };
    await validate(options(12, few));
    const before = readFileSync(join(out(), 'answers.jsonl'), 'utf8').split('\n').length;
    // In another order than the limit gave them.
    const prompts = readPrompts(PROMPTS, { limit: 12, seed: 0 }).slice(0, 8).reverse();
    const { report } = await validate(options(null, { ...few, prompts, resume: true }));
    expect(report.overall.prompts).toBe(8);
    expect(report.provenance.prompts.count).toBe(8);
    expect(readFileSync(join(out(), 'answers.jsonl'), 'utf8').split('\n')).toHaveLength(before);
    const { report: afresh } = await validate(options(null, { ...few, prompts, out: null }));
    expect(report.overall).toEqual(afresh.overall);
  });

  it.each([
    ['weights', { weights: 'int8' as const }],
    ['a longest answer', { maxTokens: 17 }],
    ['a context', { maxContext: 128 }],
  ])('are refused with other %s', async (_, changes) => {
    const settings = { temperatures: [1], maxTokens: 16, out: out(), resume: true, ...changes };
    await expect(validate(options(12, settings))).rejects.toThrow(/same models and settings/);
  });
});

it('leaves out prompts that fill the context, says so, and measures and times the others', async () => {
  const [first, ...others] = readPrompts(PROMPTS, { limit: 4, seed: 0 });
  const content = 'once more '.repeat(100);
  const { report } = await validate(
    options(null, {
      prompts: [{ ...first!, id: 'endless', messages: [{ role: 'user', content }] }, ...others],
      maxContext: 96,
      maxTokens: 8,
      speedPrompts: 4,
    }),
  );
  expect(report.provenance.prompts).toMatchObject({ count: 3, tooLong: ['endless'] });
  expect(report).toMatchObject({ complete: true, overall: { prompts: 3 }, speed: { prompts: 3 } });
});

describe('what can be served can be measured', () => {
  const few = { maxTokens: 6 };

  it('a drafter that taps the last layer without saying where, with a tensor that nothing knows', async () => {
    const drafter = new VariedDrafter(DRAFTER);
    drafter.config.dflash_config['target_layer_ids'] = [0, 2, 3, 4, 7];
    drafter.add('extra.weight', 'F32', [1], new Uint8Array(4));
    const settings = { ...few, drafter: drafter.write(join(temporary.path, 'last-layer')) };
    await expect(validate(options(2, { ...settings, allowUnclaimed: true }))).rejects.toThrow(/final_tap/);
    await expect(validate(options(2, { ...settings, finalTap: ['pre'] }))).rejects.toThrow(/extra\.weight/);
    const { report } = await validate(options(2, { ...settings, finalTap: ['pre'], allowUnclaimed: true }));
    expect(report).toMatchObject({ complete: true, overall: { prompts: 2 } });
  });

  it('with prompts as requests with chat_template_kwargs have them', async () => {
    const target = join(temporary.path, 'template');
    cpSync(TARGET, target, { recursive: true });
    const file = join(target, 'tokenizer_config.json');
    const config = JSON.parse(readFileSync(file, 'utf8'));
    const template = `${config.chat_template}{%- if enable_thinking is defined and not enable_thinking %}{{- 'no thoughts' }}{%- endif %}`;
    writeFileSync(file, JSON.stringify({ ...config, chat_template: template }));
    const settings = { ...few, target, out: join(temporary.path, 'kwargs') };
    const prompts = async (templateVariables: Readonly<Record<string, unknown>>) => {
      const { store, report } = await validate(options(2, { ...settings, templateVariables }));
      expect(report.settings.chatTemplateKwargs).toEqual(templateVariables);
      return new Map(store.served(0).map(({ id, promptTokens }) => [id, promptTokens]));
    };
    const [plain, quiet] = [await prompts({}), await prompts({ enable_thinking: false })];
    for (const [id, tokens] of quiet) {
      const served = plain.get(id) ?? [];
      expect(tokens.length).toBeGreaterThan(served.length);
      expect(tokens.slice(0, served.length)).toEqual(served);
    }
    const resumed = { ...settings, resume: true, templateVariables: { enable_thinking: true } };
    await expect(validate(options(2, resumed))).rejects.toThrow(/same models and settings/);
  });

  it('but plain decoding, which drafts nothing', async () => {
    await expect(validate(options(2, { drafter: 'a=none' }))).rejects.toThrow(/got none, which drafts nothing/);
  });
});

describe('comparing drafters', () => {
  it('finds a drafter as good as itself, and better than looking up n-grams', async () => {
    const { pairs, members } = await compare({
      ...common(),
      prompts: readPrompts(PROMPTS, { limit: 16, seed: 0 }),
      drafters: [`a=${DRAFTER}`, `b=${DRAFTER}`, 'ngram'],
      temperature: 0,
      draftTokens: null,
      margin: 0.05,
    });
    expect(pairs.map(({ b, verdict }) => [b, verdict])).toEqual([
      ['b', 'equivalent'],
      ['ngram', 'worse'],
    ]);
    expect(members[0]?.acceptanceLength).toEqual(members[1]?.acceptanceLength);
    expect(members[2]?.forced).toMatchObject({ coverage: null, overlapBySlot: null });
  });

  it('tells two drafters apart whose own intervals overlap, by the reference’s paired difference', async () => {
    const { pairs, members } = await compare({
      ...common(),
      prompts: readPrompts(PROMPTS, { limit: null, seed: 0 }),
      drafters: [`right=${DRAFTER}`, `shifted=${join(FOLDER, 'bad', 'layer-ids-shifted')}`],
      temperature: 0,
      draftTokens: null,
      margin: 0.05,
    });
    const [right, shifted] = members.map(({ acceptanceLength }) => acceptanceLength);
    expect(shifted?.high).toBeGreaterThan(right!.low!);
    const [pair] = pairs;
    expect(pair?.verdict).toBe('worse');
    // The reference has 0.41 with a standard error of 0.06.
    expect(pair?.acceptanceLength.value).toBeCloseTo(-0.41, 1);
    expect((pair!.acceptanceLength.high! - pair!.acceptanceLength.low!) / (2 * 1.96)).toBeCloseTo(0.06, 1);
  });
});
