import { describe, expect, it } from 'vitest';
import type { MeasuredRound } from '../../../../src/validate/measure/answer-records.ts';
import { buildReport } from '../../../../src/validate/report/build-report.ts';
import { csvReport } from '../../../../src/validate/report/csv-report.ts';
import { htmlReport } from '../../../../src/validate/report/html-report.ts';
import { type Report, reportSchema } from '../../../../src/validate/report/report-schema.ts';
import { countedAnswer, servedAcceptance } from '../../../../src/validate/report/served-acceptance.ts';
import { terminalReport } from '../../../../src/validate/report/terminal-report.ts';
import { anchors, forced, round, served } from './measured-answers.ts';

const ROUNDS: MeasuredRound[] = [
  round({ position: 10, draft: [2, 3], accepted: 2 }),
  round({ position: 13, draft: [5, 0], accepted: 1 }),
];
const DRAFTS = anchors([
  [2, 3],
  [3, 4],
  [4, 5],
  [5, 0],
  [6, 0],
]);

function report(
  fields: {
    readonly thresholds?: Report['gates'][number]['threshold'];
    readonly complete?: boolean;
    readonly category?: string;
    readonly tooLong?: string[];
  } = {},
): Report {
  const { thresholds, complete = true, category = 'x', tooLong = [] } = fields;
  const common = { category, tokens: [1, 2, 3, 4, 5, 6] };
  return buildReport({
    provenance: {
      date: '2030-01-02T03:04:05.000Z',
      version: '0.1.0',
      commit: 'abc1234',
      node: 'v20',
      onnxRuntime: '1.30',
      cpu: 'cpu',
      cores: 2,
      memoryGiB: 8,
      command: 'blockdraft validate',
      target: { folder: 'target', sha256: 'f'.repeat(64) },
      drafters: [{ name: 'd', folder: 'd', sha256: 'e'.repeat(64) }],
      prompts: { file: 'p.jsonl', sha256: 'd'.repeat(64), count: 2, tooLong },
    },
    settings: {
      weights: 'f32',
      device: 'cpu',
      threads: 2,
      concurrency: 8,
      maxTokens: 6,
      temperatures: [0],
      chatTemplateKwargs: {},
      seed: 0,
      draftTokens: 2,
      maxDraftTokens: 2,
    },
    complete,
    drafter: 'd',
    passes: [
      {
        served: [served({ ...common, rounds: ROUNDS }), served({ ...common, id: 'b', rounds: ROUNDS })],
        forced: [forced({ ...common, anchors: { d: DRAFTS } }), forced({ ...common, id: 'b', anchors: { d: DRAFTS } })],
      },
    ],
    speed: {
      prompts: 2,
      repeats: 1,
      temperature: 0,
      byCategory: {
        [category]: {
          answers: 1,
          tokens: 6,
          medianLatencyMs: 500,
          medianFirstTokenMs: 100,
          medianInterTokenMs: 80,
          medianTokensPerSecond: 12,
          acceptance: servedAcceptance([countedAnswer(served({ ...common, rounds: ROUNDS }))], 2, 0),
        },
      },
      plainTokensPerSecond: 10,
      tokensPerSecond: 12,
      speedUp: { value: 1.2, low: 1.1, high: 1.3 },
      stepMs: [{ rows: 1, ms: 10 }],
      draftMs: 2,
      byDraftLength: [{ draftTokens: 2, acceptanceLength: 2.5, roundMs: 14, speedUp: 1.8, breakEven: 1.4 }],
      bestDraftTokens: 2,
      predictedSpeedUp: 1.8,
    },
    differing: [],
    compared: 2,
    thresholds: thresholds === undefined ? {} : { minAcceptanceLength: thresholds, maxCalibrationError: 0.9 },
  });
}

describe('a report', () => {
  it('follows its schema, and comes back from JSON as it was', () => {
    const made = report();
    expect(reportSchema.parse(JSON.parse(JSON.stringify(made)))).toEqual(made);
    expect(made.overall.emittedPerStep.value).toBe(2.5);
    expect(made.lossless).toEqual({ compared: 4, differing: [] });
    expect(made.consistency.gap.value).toBe(0);
  });

  it('checks gates, those of figures that should be small among them', () => {
    expect(report({ thresholds: 2 }).gates).toMatchObject([
      { name: 'minAcceptanceLength', threshold: 2, value: 2.5, passed: true },
      { name: 'maxCalibrationError', passed: true },
    ]);
    expect(report({ thresholds: 2.6 }).gates[0]?.passed).toBe(false);
  });

  it('says on a terminal what matters, and that it is partial where it is', () => {
    const text = terminalReport(report({ thresholds: 2.6, complete: false }));
    expect(text).toMatch(/Lossless: 4 answers/);
    expect(text).toMatch(/INTERRUPTED/);
    expect(text).toMatch(/FAILED {2}minAcceptanceLength 2\.6: 2\.500/);
    expect(terminalReport(report())).not.toMatch(/INTERRUPTED|FAILED|Left out/);
  });

  it('names its columns as the page does, and no figure an acceptance length that is another one', () => {
    const text = terminalReport(report());
    for (const name of ['tokens per round', 'of proposed %', 'of inside %', 'conditional %', 'walked %', 'forced %']) {
      expect(text).toContain(name);
      expect(htmlReport(report())).toContain(`>${name}<`);
    }
    expect(text).not.toContain('acceptance length');
  });

  it('names the prompts that were not measured', () => {
    const said = /Left out: 2 of 4 prompts, which fill the context: long, longer\./;
    const made = report({ tooLong: ['long', 'longer'] });
    expect(terminalReport(made)).toMatch(said);
    expect(htmlReport(made)).toMatch(said);
  });
});

describe('the page', () => {
  it('needs nothing from outside and runs nothing', () => {
    const html = htmlReport(report());
    expect(html).not.toMatch(/<script|https?:|url\(|@import|<img|<link/);
    expect(html.match(/<svg/g)?.length).toBeGreaterThanOrEqual(7);
  });

  it('shows names as text, whatever they are', () => {
    const html = htmlReport(report({ category: '<b>&"x"' }));
    expect(html).not.toContain('<b>&"x"');
    expect(html).toContain('&lt;b&gt;&amp;&quot;x&quot;');
  });

  it('draws no figure that is not there', () => {
    expect(htmlReport(report())).not.toMatch(/NaN|undefined|null/);
  });
});

describe('the files of speculators’ evaluation', () => {
  it('have its columns and definitions', () => {
    const files = csvReport(report());
    expect(files['acceptance.csv']).toBe(
      'subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0,acceptance_at_pos_1\n' +
        'x,4,8,6,2.5,1,0.5\n',
    );
    expect(files['perf_results.csv']).toBe(
      'subset,strategy,target_rate,rps_median,latency_median_s,itl_median_ms,ttft_median_ms,output_tps_median,total_output_tokens,' +
        'num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0,acceptance_at_pos_1\n' +
        'x,synchronous,,2,0.5,80,100,12,6,2,4,3,2.5,1,0.5\n',
    );
    expect(files['eval_command.txt']).toMatch(/^# Timestamp: 2030.*\n# Git SHA: abc1234\n[\s\S]*\nblockdraft validate\n$/);
  });

  it('quote names with commas', () => {
    expect(csvReport(report({ category: 'a,"b"' }))['acceptance.csv']).toContain('"a,""b""",4');
  });
});
