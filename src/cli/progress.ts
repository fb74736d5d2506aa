/** How far long work is, for a person or for a program. */
import { Option } from '@commander-js/extra-typings';
import { createProgressBar, type ProgressBar } from './progress-bar.ts';

export type ProgressForm = 'bar' | 'json';
export type ShowProgress = (label: string, unit: (amount: number) => string, done: number, total: number) => void;

export interface Progress {
  readonly show: ShowProgress;
  /** Clears what is on the screen. */
  end(): void;
}

/** Lines no nearer than this, but for the first and the last of a label. */
const LINE_MS = 250;

export function progressOption() {
  return new Option('--progress <form>', 'on standard error: a bar, or JSON lines {"progress": {stage, done, total}}')
    .choices(['bar', 'json'] as const)
    .default('bar' as const);
}

export function createProgress(form: ProgressForm, stream: NodeJS.WriteStream = process.stderr): Progress {
  return form === 'json' ? progressLines(stream) : progressBars(stream);
}

function progressBars(stream: NodeJS.WriteStream): Progress {
  const bars = new Map<string, ProgressBar>();
  return {
    show(label, unit, done, total) {
      const bar = bars.get(label) ?? createProgressBar(label, unit, stream);
      bars.set(label, bar);
      bar.update(done, total);
      if (done >= total) bar.end();
    },
    end() {
      for (const bar of bars.values()) bar.end();
    },
  };
}

function progressLines(stream: NodeJS.WriteStream): Progress {
  const written = new Map<string, number>();
  return {
    show(stage, _unit, done, total) {
      const now = performance.now();
      if (done < total && now - (written.get(stage) ?? Number.NEGATIVE_INFINITY) < LINE_MS) return;
      written.set(stage, now);
      stream.write(`${JSON.stringify({ progress: { stage, done, total } })}\n`);
    },
    end: () => undefined,
  };
}
