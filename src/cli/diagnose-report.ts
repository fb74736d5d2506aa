/** A diagnosis as people read it. */
import type { Diagnosis, Finding, ProbeReport } from '../validate/diagnosis.ts';
import { leftOut } from '../validate/report/left-out.ts';

const WIDTH = 110;
/** Probes in the table: those that gained most and those that lost most are the telling ones. */
const SHOWN_PROBES = 16;
/** Below so many, chance is in most figures; docs/diagnosis.md has what they can show. */
const ENOUGH_PROMPTS = 40;
/** Width of the names of figures. */
const NAME = 21;

export function formatDiagnosis(diagnosis: Diagnosis): string {
  const { acceptance, findings, notes, recorded } = diagnosis;
  const lines = [
    diagnosis.healthy
      ? 'No fault that costs acceptance was found.'
      : `${findings.length} finding${findings.length === 1 ? '' : 's'}, the most important first:`,
    '',
    ...findings.flatMap(formatFinding),
    ...notes.flatMap(({ note, evidence }) => [...wrap(`note: ${note}`, ''), ...wrap(evidence, '      '), '']),
    ...[leftOut({ tooLong: recorded.tooLong, count: recorded.prompts }) ?? [], tooFew(recorded.prompts)]
      .flat()
      .flatMap((line) => [...wrap(line, ''), '']),
    `Acceptance as declared, ${recorded.prompts} prompts, ${recorded.tokens} answer tokens:`,
    ...figure(
      'tokens per round',
      `${acceptance.servedTau.value.toFixed(2)}  (95 % interval ${acceptance.servedTau.low.toFixed(2)} to ${acceptance.servedTau.high.toFixed(2)})`,
    ),
    ...figure('teacher forced', acceptance.forcedTau.value.toFixed(2)),
    ...figure('accepted by slot', shares(acceptance.acceptance)),
    ...figure('right by slot', `${shares(acceptance.accuracy)}   (teacher forced)`),
    ...figure('right if before are', `${shares(acceptance.conditional)}   (teacher forced)`),
    ...figure('own confidence', shares(acceptance.confidence)),
    ...figure(
      'by category',
      Object.entries(acceptance.byCategory).map(([category, tau]) => `${category} ${tau.toFixed(2)}`),
    ),
    ...figure(
      'agreement by layer',
      diagnosis.teacher.map(({ layer, tau }) => `${layer}: ${tau.toFixed(2)}`),
      '(logit lens; the last is the target)',
    ),
    ...figure('fc norm by tap', diagnosis.fcNorms.map((norm) => norm.toFixed(2)).join(' ')),
    '',
    ...wrap(
      'What if (gain in tokens per round against the declared setting; of 16-bit floats against it with the findings mended):',
      '',
    ),
    ...probeTable(diagnosis.probes),
    '',
  ];
  return `${lines.join('\n')}`;
}

function formatFinding({ rank, fault, confidence, effect, evidence, advice }: Finding): string[] {
  const size = effect === null ? '' : ` · about ${effect.toFixed(2)} tokens per round`;
  return [
    `${rank}. ${fault}  (confidence ${confidence > 0.995 ? 'above 0.99' : confidence.toFixed(2)}${size})`,
    ...evidence.flatMap((line) => wrap(line, '   ')),
    ...wrap(`Do: ${advice}`, '   '),
    '',
  ];
}

function tooFew(prompts: number): readonly string[] {
  return prompts >= ENOUGH_PROMPTS
    ? []
    : [
        `${prompts} prompts are few: what was found may be chance, and what was not may be hidden. Give ${ENOUGH_PROMPTS} or more.`,
      ];
}

/** A line of acceptance, of one value or several; what does not fit goes on below the value. */
function figure(name: string, value: string | readonly string[], remark = ''): string[] {
  const values = typeof value === 'string' ? [value] : value.map((one, i) => (i < value.length - 1 ? `${one} ·` : one));
  const [first = '', ...rest] = wrap(remark === '' ? values : [...values, remark], ' '.repeat(NAME + 2));
  return [`  ${name.padEnd(NAME)}${first.trimStart()}`, ...rest];
}

function probeTable(probes: readonly ProbeReport[]): string[] {
  const sorted = [...probes].sort((a, b) => b.servedGain.value - a.servedGain.value);
  const shown =
    sorted.length <= SHOWN_PROBES ? sorted : [...sorted.slice(0, SHOWN_PROBES / 2), ...sorted.slice(-SHOWN_PROBES / 2)];
  const name = Math.max(...shown.map(({ probe }) => probe.length), 5);
  const row = (cells: readonly string[]) =>
    `  ${cells[0]?.padEnd(name)}  ${cells
      .slice(1)
      .map((cell) => cell.padStart(9))
      .join(' ')}`;
  const left = sorted.length - shown.length;
  return [
    row(['probe', 'prompts', 'per round', 'gain', '± 95 %', 'slot 1']),
    ...shown.map(({ probe, prompts, servedTau, servedGain, firstSlotGain }) =>
      row([
        probe,
        String(prompts),
        servedTau.toFixed(2),
        signed(servedGain.value),
        ((servedGain.high - servedGain.low) / 2).toFixed(2),
        signed(firstSlotGain.value, 3),
      ]),
    ),
    ...(left > 0 ? [`  (${left} between them are in --json)`] : []),
  ];
}

function shares(values: readonly number[]): string {
  return values.map((value) => (Number.isNaN(value) ? '  - ' : value.toFixed(2))).join(' ');
}

function signed(value: number, digits = 2): string {
  return `${value >= 0 ? '+' : ''}${value.toFixed(digits)}`;
}

/** @param text a sentence, or parts that stay whole */
function wrap(text: string | readonly string[], indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of typeof text === 'string' ? text.split(' ') : text) {
    if (line.length + word.length + 1 > WIDTH && line.trim() !== '') {
      lines.push(line);
      line = indent;
    }
    line += line.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, line];
}
