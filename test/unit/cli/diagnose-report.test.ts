import { expect, it } from 'vitest';
import { formatDiagnosis } from '../../../src/cli/diagnose-report.ts';
import type { Diagnosis } from '../../../src/validate/diagnosis.ts';

const ESTIMATE = { value: 0.9, standardError: 0.1, low: 0.8, high: 1, p: 0.01, clusters: 3 };

function diagnosis(tooLong: readonly string[]): Diagnosis {
  return {
    healthy: true,
    findings: [],
    notes: [],
    acceptance: {
      servedTau: ESTIMATE,
      forcedTau: ESTIMATE,
      acceptance: [0.5],
      accuracy: [0.5],
      conditional: [0.5],
      confidence: [0.5],
      byCategory: { all: 2 },
    },
    probes: [],
    teacher: [{ layer: 0, tau: 1 }],
    promptForms: {},
    fcNorms: [1],
    lookupRecall: ESTIMATE,
    recorded: { prompts: 3, tokens: 72, tooLong },
  };
}

it('a diagnosis of few prompts says that they are', () => {
  const few = diagnosis([]);
  expect(formatDiagnosis(few)).toContain('3 prompts are few');
  expect(formatDiagnosis({ ...few, recorded: { ...few.recorded, prompts: 40 } })).not.toContain('are few');
});

it('a diagnosis of a deep target keeps to the width of a page, with values below values', () => {
  const teacher = Array.from({ length: 48 }, (_, layer) => ({ layer, tau: 1 }));
  const lines = formatDiagnosis({ ...diagnosis([]), teacher }).split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(110);
  const start = lines.findIndex((line) => line.startsWith('  agreement by layer   0: 1.00'));
  expect(lines[start + 1]).toMatch(/^ {23}\d+: 1\.00 ·/);
});

it('a diagnosis says which prompts it left out', () => {
  expect(formatDiagnosis(diagnosis(['long']))).toContain('Left out: 1 of 4 prompts, which fill the context: long.');
  expect(formatDiagnosis(diagnosis([]))).not.toContain('Left out');
});
