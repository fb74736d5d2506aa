import { cpSync, mkdirSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findCheckpoints } from '../../../../src/validate/watch/checkpoints.ts';
import { checkNewest } from '../../../../src/validate/watch/newest-gates.ts';
import { overlayRuns } from '../../../../src/validate/watch/overlay.ts';
import { readTrainingLog } from '../../../../src/validate/watch/training-log.ts';
import { watchHtml, watchText } from '../../../../src/validate/watch/watch-page.ts';
import type { Watch, WatchPoint } from '../../../../src/validate/watch/watch-schema.ts';

const DRAFTER = join(import.meta.dirname, '../../../golden/fixtures/testbed/drafter');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'blockdraft-watch-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

describe('checkpoints of a run', () => {
  it('are folders whose names end in a step, in the order of steps', async () => {
    for (const name of ['step-1000', 'checkpoint_200.pt', 'epoch2-step30', 'best'])
      cpSync(DRAFTER, join(folder, name), { recursive: true });
    writeFileSync(join(folder, 'log-5'), '');
    expect((await findCheckpoints(folder)).map(({ step }) => step)).toEqual([30, 200, 1000]);
  });

  it('are left out while they are written', async () => {
    for (const name of ['step-1', 'step-2', 'step-3']) cpSync(DRAFTER, join(folder, name), { recursive: true });
    truncateSync(join(folder, 'step-1', 'model.safetensors'), 1000);
    writeFileSync(join(folder, 'step-2', 'config.json'), '{"archi');
    mkdirSync(join(folder, 'step-4'));
    cpSync(DRAFTER, join(folder, 'step-5'), { recursive: true });
    const index = { weight_map: { 'fc.weight': 'model.safetensors', 'norm.weight': 'model-2.safetensors' } };
    writeFileSync(join(folder, 'step-5', 'model.safetensors.index.json'), JSON.stringify(index));
    expect((await findCheckpoints(folder)).map(({ step }) => step)).toEqual([3]);
  });

  it('have another stamp when they were written again', async () => {
    cpSync(DRAFTER, join(folder, 'step-1'), { recursive: true });
    const stamps = async () => (await findCheckpoints(folder)).map(({ stamp }) => stamp);
    const first = await stamps();
    expect(await stamps()).toEqual(first);
    utimesSync(join(folder, 'step-1', 'model.safetensors'), 1, 1);
    expect(await stamps()).not.toEqual(first);
  });

  it('need a folder', async () => {
    await expect(findCheckpoints(join(folder, 'none'))).rejects.toThrow(/check its path/);
  });
});

describe('a training log', () => {
  const read = (text: string) => {
    writeFileSync(join(folder, 'log.jsonl'), text);
    return readTrainingLog(join(folder, 'log.jsonl'), 'v1');
  };

  it('may have other lines, and a last one that is being written', () => {
    expect(
      read('{"step":1,"loss":2.5}\n{"step":1,"lr":0.1}\n\n{"step":2,"accuracy":0.5,"streak":1.5,"x":[1]}\n{"step":3,"lo'),
    ).toEqual({
      points: [
        { run: 'v1', step: 1, accuracy: null, streak: null, loss: 2.5 },
        { run: 'v1', step: 2, accuracy: 0.5, streak: 1.5, loss: null },
      ],
      complaint: null,
    });
  });

  it('may have what is not finite, as Python writes it', () => {
    expect(read('{"step":1,"loss":NaN,"streak":1.5}\n{"step":2,"loss":Infinity,"accuracy":-Infinity}\n')).toEqual({
      points: [{ run: 'v1', step: 1, accuracy: null, streak: 1.5, loss: null }],
      complaint: null,
    });
  });

  it.each([
    ['{"step":1,"loss":2.5}\n{"loss":2}\n', /in line 2;/],
    ['{"step":1\nText\n{"step":1,"loss":2.5}\n', /in line 1;/],
  ])('says which line it cannot use, and goes on (%j)', (text, complaint) => {
    const log = read(text);
    expect(log.complaint).toMatch(complaint);
    expect(log.points).toEqual([{ run: 'v1', step: 1, accuracy: null, streak: null, loss: 2.5 }]);
  });

  it('need not be there yet', () => {
    const log = readTrainingLog(join(folder, 'none.jsonl'), 'v1');
    expect(log).toEqual({ points: [], complaint: expect.stringMatching(/Cannot read the training log .*none\.jsonl/) });
  });
});

describe('runs at equal steps', () => {
  const point = (run: string, step: number, gain: (prompt: number) => number): WatchPoint => {
    const none = { value: null, low: null, high: null };
    return {
      run,
      step,
      folder: `${run}-${step}`,
      sha256: '',
      stamp: '',
      tooLong: [],
      acceptanceLength: none,
      streak: none,
      accuracy: none,
      accuracyBySlot: [],
      prompts: Array.from({ length: 12 }, (_, i) => ({
        id: `p${i}`,
        emitted: 200 + 10 * gain(i) + i,
        rounds: 100,
        prefix: 100,
        anchors: 200,
      })),
    };
  };
  const noise = (i: number) => (i % 2 === 0 ? 1 : -1);

  it('say which is behind, by how much and since when', () => {
    const points = [100, 200, 300, 400].flatMap((step) => [
      point('v3', step, () => 0),
      point('v5', step, (i) => (step < 300 ? noise(i) : noise(i) - 4)),
    ]);
    const [overlay] = overlayRuns(['v3', 'v5'], points, 0);
    expect(overlay?.since).toBe(300);
    expect(overlay?.words).toMatch(
      /^v5 is behind v3 by 0\.40 \[0\.3\d, 0\.\d\d\] tokens per round at step 400, since step 300\.$/,
    );
    expect(overlay?.steps.map(({ step }) => step)).toEqual([100, 200, 300, 400]);
  });

  it('cannot be told apart when the last interval has both signs', () => {
    const points = [100, 200].flatMap((step) => [
      point('v3', step, () => 0),
      point('v5', step, (i) => (step < 200 ? 4 : noise(i))),
    ]);
    expect(overlayRuns(['v3', 'v5'], points, 0)[0]).toMatchObject({
      since: null,
      words: expect.stringMatching(/cannot be told apart/),
    });
  });

  it('have nothing to say without equal steps', () => {
    expect(overlayRuns(['v3', 'v5'], [point('v3', 1, () => 0), point('v5', 2, () => 0)], 0)).toEqual([]);
  });
});

describe('the page of runs', () => {
  const figure = (value: number) => ({ value, low: null, high: null });
  const point = (run: string, step: number): WatchPoint => ({
    run,
    step,
    folder: `${run}-${step}`,
    sha256: '',
    stamp: '',
    tooLong: ['p9'],
    acceptanceLength: figure(2),
    streak: figure(1),
    accuracy: figure(0.5),
    accuracyBySlot: [figure(0.6), figure(0.5), figure(0.4)],
    prompts: [],
  });
  const watch: Watch = {
    format: 'blockdraft-watch',
    formatVersion: 1,
    target: 't',
    conditions: '',
    points: [point('v3', 1), point('v3', 2), point('v5', 1), point('v5', 2)],
    logged: [1, 2].map((step) => ({ run: 'v5', step, accuracy: 0.7, streak: null, loss: null })),
    overlays: [],
    gates: [{ run: 'v5', step: 2, name: 'minStreak', threshold: 1.5, value: 1, passed: false }],
  };
  const html = watchHtml(watch);
  const chart = (title: string) => html.match(new RegExp(`<figcaption>${title}</figcaption>.*?</figure>`))?.[0] ?? '';

  it('draws what a run logged in the colour of what was measured of it, dashed', () => {
    const strokes = [...chart('Accuracy').matchAll(/class="line" stroke="(#\w+)"( stroke-dasharray)?/g)];
    expect(strokes.map(([, stroke, dashed]) => [stroke, dashed !== undefined])).toEqual([
      ['#0072b2', false],
      ['#d55e00', false],
      ['#d55e00', true],
    ]);
  });

  it('has accuracy by slot over steps of each run', () => {
    for (const run of ['v3', 'v5']) expect(chart(`Accuracy by slot over steps, ${run}`)).toContain('<svg');
  });

  it('tells of each step the last of each figure that was logged by then', () => {
    const line = (step: number, accuracy: number | null, streak: number | null) => ({
      run: 'v5',
      step,
      accuracy,
      streak,
      loss: 1,
    });
    const logged = [line(1, 0.25, null), line(1, null, 1.5), line(2, null, null), line(3, 0.75, 3)];
    const rows = watchText({ ...watch, points: [point('v5', 2)], logged }).split('\n');
    expect(rows.find((row) => row.startsWith('v5'))).toMatch(/ 25\.0 +1\.50$/);
  });

  it('says what was left out, and which gates passed', () => {
    for (const form of [html, watchText(watch)]) {
      expect(form).toContain('Left out: 1 of 1 prompts');
      expect(form).toContain('FAILED  v5 at step 2: minStreak 1.5: 1.000');
    }
  });

  it('has ticks at whole slots and steps only', () => {
    const ticks = [...html.matchAll(/class="tick"[^>]*text-anchor="middle">([^<]+)</g)].map(([, text]) => Number(text));
    expect(ticks.length).toBeGreaterThan(0);
    expect(ticks.filter((tick) => !Number.isInteger(tick))).toEqual([]);
  });
});

describe('gates', () => {
  const figure = (value: number | null) => ({ value, low: null, high: null });
  const point = (run: string, step: number, streak: number) =>
    ({ run, step, acceptanceLength: figure(2), streak: figure(streak), accuracyBySlot: [figure(0.5)] }) as WatchPoint;
  const points = [point('v3', 200, 0.5), point('v3', 100, 5), point('v5', 100, 2)];

  it('look at the newest checkpoint of each run', () => {
    expect(checkNewest(['v3', 'v5'], points, { minStreak: 1 })).toEqual([
      { run: 'v3', step: 200, name: 'minStreak', threshold: 1, value: 0.5, passed: false },
      { run: 'v5', step: 100, name: 'minStreak', threshold: 1, value: 2, passed: true },
    ]);
    const both = { minAcceptanceLength: 2, minFirstSlotAccuracy: 0.6 };
    expect(checkNewest(['v5'], points, both).map(({ name, passed }) => [name, passed])).toEqual([
      ['minAcceptanceLength', true],
      ['minFirstSlotAccuracy', false],
    ]);
  });

  it('are not passed by a run without checkpoints', () => {
    expect(checkNewest(['v9'], points, { minStreak: 0 })).toMatchObject([{ step: null, value: null, passed: false }]);
  });
});
