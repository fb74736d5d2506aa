import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  truncateSync,
  utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { watchDrafter, watchedFolders } from '../../../src/cli/watch-drafter.ts';
import { AppError } from '../../../src/core/app-error.ts';
import type { DrafterStatus, SwapRecord } from '../../../src/engine/engine.ts';
import { until } from '../../support/labelled-timeout.ts';
import { type LogLine, recordingLogger } from '../../support/recording-logger.ts';
import { TESTBED_DRAFTER } from '../../support/testbed-engine.ts';

const POLL_MS = 5;
let folder: string;
let stop: AbortController;
let watching: Promise<void>;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'blockdraft-run-')));
  stop = new AbortController();
  watching = Promise.resolve();
});

afterEach(async () => {
  stop.abort();
  await watching;
  rmSync(folder, { recursive: true });
});

const write = (name: string) => cpSync(TESTBED_DRAFTER, join(folder, name), { recursive: true });
/** Long enough for several looks. */
const looks = () => new Promise((resolve) => setTimeout(resolve, 20 * POLL_MS));

function watch(served: string | null) {
  const loads: string[] = [];
  const warnings: LogLine[] = [];
  let swaps: SwapRecord[] = [];
  let refusal: AppError | null = null;
  const engine = {
    drafterStatus: () => [{ name: 'live', kind: 'dflash', folder: served, swaps } as unknown as DrafterStatus],
    async loadDrafter(_name: string, path: string) {
      loads.push(path.slice(folder.length + 1));
      if (refusal !== null) throw refusal;
      swaps = [...swaps, { state: 'watching', path, time: 'now', reason: null } as SwapRecord];
      return swaps.at(-1)!;
    },
  };
  watching = watchDrafter({
    engine,
    name: 'live',
    folder,
    pollMs: POLL_MS,
    signal: stop.signal,
    logger: recordingLogger(warnings),
  });
  return {
    loads,
    warnings,
    decide: (state: SwapRecord['state']) => (swaps = swaps.map((swap) => ({ ...swap, state }))),
    refuse: (error: AppError | null) => (refusal = error),
  };
}

describe('a watched folder', () => {
  it('gives its newest checkpoint, and later ones when the swap before is decided', async () => {
    write('step-1');
    write('step-2');
    const { loads, decide } = watch('/elsewhere');
    await until('the newest is loaded', () => loads.length > 0);
    write('step-3');
    write('step-4');
    await looks();
    expect(loads).toEqual(['step-2']);
    decide('kept');
    await until('the next is loaded', () => loads.length > 1);
    expect(loads).toEqual(['step-2', 'step-4']);
  });

  it('begins behind the checkpoint that is served', async () => {
    write('step-1');
    write('step-2');
    const { loads } = watch(join(folder, 'step-2'));
    await looks();
    expect(loads).toEqual([]);
    write('step-3');
    await until('the next is loaded', () => loads.length > 0);
    expect(loads).toEqual(['step-3']);
  });

  it('never gives one again that was rolled back, nor an older one', async () => {
    write('step-2');
    const { loads, decide } = watch('/elsewhere');
    await until('it is loaded', () => loads.length > 0);
    decide('rolled-back');
    write('step-1');
    await looks();
    expect(loads).toEqual(['step-2']);
  });

  it('nor when the server starts again, unless it was written again', async () => {
    write('step-1');
    write('step-2');
    const first = watch('/elsewhere');
    await until('it is loaded', () => first.loads.length > 0);
    first.decide('rolled-back');
    stop.abort();
    await watching;
    expect(JSON.parse(readFileSync(join(folder, 'rolled-back-live.jsonl'), 'utf8'))).toMatchObject({ checkpoint: 'step-2' });
    appendFileSync(join(folder, 'rolled-back-live.jsonl'), '{"half');
    stop = new AbortController();
    const second = watch('/elsewhere');
    await until('the one before is loaded', () => second.loads.length > 0);
    second.decide('kept');
    await looks();
    expect(second.loads).toEqual(['step-1']);
    utimesSync(join(folder, 'step-2', 'model.safetensors'), 1, 1);
    await until('it is loaded', () => second.loads.length > 1);
    expect([second.loads.at(-1), second.warnings]).toEqual(['step-2', []]);
  });

  it('goes on when that cannot be noted, and says so once', async () => {
    write('step-1');
    const { loads, decide, warnings } = watch('/elsewhere');
    await until('it is loaded', () => loads.length > 0);
    mkdirSync(join(folder, 'rolled-back-live.jsonl'));
    decide('rolled-back');
    await until('it is said', () => warnings.length > 0);
    write('step-2');
    await until('the next is loaded', () => loads.length > 1);
    expect([loads, warnings.length]).toEqual([['step-1', 'step-2'], 1]);
  });

  it('passes over what cannot be loaded, but not what came at the wrong moment', async () => {
    write('step-1');
    const { loads, refuse } = watch('/elsewhere');
    refuse(new AppError('rate_limited', 'another one is being loaded'));
    await until('it is tried again', () => loads.length > 2);
    refuse(new AppError('invalid_request', 'other taps'));
    await looks();
    const tried = loads.length;
    await looks();
    expect(loads).toHaveLength(tried);
    refuse(null);
    write('step-2');
    await until('the next is loaded', () => loads.at(-1) === 'step-2');
  });

  it('waits for a checkpoint to be complete', async () => {
    write('step-1');
    truncateSync(join(folder, 'step-1', 'model.safetensors'), 1000);
    const { loads } = watch('/elsewhere');
    await looks();
    expect(loads).toEqual([]);
    write('step-1');
    await until('it is loaded', () => loads.length > 0);
  });
});

describe('--watch-drafter', () => {
  it('is a name and a folder that is there', () => {
    expect(watchedFolders([`live=${folder}`])).toEqual([{ name: 'live', path: folder }]);
    expect(() => watchedFolders([folder])).toThrow(/name=folder/);
    expect(() => watchedFolders([`live=${folder}/none`])).toThrow(/that is there/);
    expect(() => watchedFolders([`live=${folder}`, `live=${folder}`])).toThrow(/two for live/);
  });
});
