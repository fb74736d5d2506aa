import { describe, expect, it } from 'vitest';
import { acceptanceStatistics } from '../../src/core/acceptance-statistics.ts';
import golden from './fixtures/acceptance/golden.json' with { type: 'json' };

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

describe('acceptance statistics of hand-made traces', () => {
  it.each(golden.cases)('$name', ({ requests, num_spec_tokens, expected }) => {
    const rounds = (requests as number[][][]).map((steps) =>
      steps.map(([drafted, accepted, emitted]) => ({
        drafted: drafted!,
        accepted: accepted!,
        emitted: emitted ?? accepted! + 1,
      })),
    );
    const statistics: Readonly<Record<string, unknown>> = { ...acceptanceStatistics(rounds, num_spec_tokens) };
    expect(Object.keys(statistics).sort()).toEqual(Object.keys(expected).map(camelCase).sort());
    for (const [name, value] of Object.entries(expected)) {
      expect(rounded(statistics[camelCase(name)]), name).toEqual(rounded(value));
    }
  });
});

/** Twelve significant digits of every number inside. */
function rounded(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, inner: unknown) =>
    typeof inner === 'number' ? Number(inner.toPrecision(12)) : inner,
  );
}
