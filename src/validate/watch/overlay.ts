/** Training runs at equal steps. */
import { formatDifference, formatInterval } from '../report/format-figure.ts';
import { Bootstrap, type Interval } from '../report/interval.ts';
import type { Overlay, WatchPoint } from './watch-schema.ts';

/** Each later run against the first, at the steps that both have. */
export function overlayRuns(runs: readonly string[], points: readonly WatchPoint[], seed: number): Overlay[] {
  const [a, ...others] = runs;
  if (a === undefined) return [];
  return others.flatMap((b) => {
    const steps = points
      .filter(({ run }) => run === a)
      .flatMap((first) => {
        const second = points.find(({ run, step }) => run === b && step === first.step);
        return second === undefined ? [] : [differenceAt(first, second, seed)];
      })
      .sort((x, y) => x.step - y.step);
    return steps.length === 0 ? [] : [{ a, b, steps, ...conclusion(a, b, steps) }];
  });
}

function differenceAt(first: WatchPoint, second: WatchPoint, seed: number): Overlay['steps'][number] {
  const pairs = first.prompts.flatMap((own) => {
    const other = second.prompts.find(({ id }) => id === own.id);
    return other === undefined ? [] : [{ own, other }];
  });
  const bootstrap = new Bootstrap(pairs.length, seed);
  const difference = (dividend: 'emitted' | 'prefix', divisor: 'rounds' | 'anchors') =>
    bootstrap.difference(
      pairs.map(({ other }) => ({ dividend: other[dividend], divisor: other[divisor] })),
      pairs.map(({ own }) => ({ dividend: own[dividend], divisor: own[divisor] })),
    );
  return { step: first.step, acceptanceLength: difference('emitted', 'rounds'), streak: difference('prefix', 'anchors') };
}

function sign({ low, high }: Interval): number {
  if (low !== null && low > 0) return 1;
  if (high !== null && high < 0) return -1;
  return 0;
}

function negative({ value, low, high }: Interval): Interval {
  const less = (figure: number | null) => (figure === null ? null : -figure);
  return { value: less(value), low: less(high), high: less(low) };
}

function conclusion(a: string, b: string, steps: Overlay['steps']): Pick<Overlay, 'since' | 'words'> {
  const last = steps.at(-1) as Overlay['steps'][number];
  const direction = sign(last.acceptanceLength);
  const place = `tokens per round at step ${last.step}`;
  if (direction === 0) {
    const difference = formatDifference(last.acceptanceLength);
    return { since: null, words: `${b} and ${a} cannot be told apart at equal steps: ${difference} ${place}.` };
  }
  const apart = steps.findLastIndex(({ acceptanceLength }) => sign(acceptanceLength) !== direction);
  const since = (steps[apart + 1] as Overlay['steps'][number]).step;
  const from = steps.length === 1 ? 'measured at this step only' : `since step ${since}`;
  const [words, distance] = direction > 0 ? ['ahead of', last.acceptanceLength] : ['behind', negative(last.acceptanceLength)];
  return { since, words: `${b} is ${words} ${a} by ${formatInterval(distance)} ${place}, ${from}.` };
}
