import { describe, expect, it } from 'vitest';
import { AutoLength } from '../../../../src/decode/draft-length/auto-length.ts';
import { always, type Machine, measured, throughput } from './simulated-machine.ts';

/** About a small model on two cores: a step of one row takes 10 ms, and draft rows are far from free. */
function machine(accepted: (confidence: number) => number, changes: Partial<Machine> = {}): Machine {
  return {
    stepMs: (rows, sequences) => 10 + 1.3 * (rows - 1) + (sequences - 1),
    draftMs: (sequences, tokens) => 1.2 + 0.18 * (tokens + sequences),
    contextMs: 0.03,
    accepted,
    confidence: (slot, random) => random ** (1 + 0.3 * slot),
    noise: 0.1,
    longest: 7,
    ...changes,
  };
}

const MACHINES: Readonly<Record<string, Machine>> = {
  'a drafter that just pays alone': machine((confidence) => 0.75 * confidence),
  'a drafter that is better than it believes': machine((confidence) => Math.min(1.3 * confidence, 1)),
  'a drafter that is mostly wrong': machine((confidence) => 0.3 * confidence),
  'a drafter that is always wrong': machine(() => 0),
  'a machine whose rows are nearly free': machine((confidence) => Math.min(1.6 * confidence, 1), {
    stepMs: (rows, sequences) => 30 + 0.5 * (rows - 1) + 0.5 * (sequences - 1),
  }),
};
const SEEDS = [1, 2, 3, 4];

describe.each(Object.entries(MACHINES))('draft lengths by expected gain, with %s', (_, simulated) => {
  it.each([1, 2, 4, 8])('are about as good as the best fixed length, and as none, for %i at once', (clients) => {
    const answers = { clients, prompt: 60, length: 48, waves: 24 };
    const rate = (policy: () => Parameters<typeof throughput>[1]) =>
      SEEDS.reduce((sum, seed) => sum + throughput(simulated, policy(), answers, seed), 0) / SEEDS.length;
    const fixed = [0, 1, 2, 3, 5, 7].map((tokens) => rate(() => always(tokens)));
    const auto = rate(() => new AutoLength(measured(simulated)));
    expect(auto / Math.max(...fixed)).toBeGreaterThan(0.975);
  });
});
