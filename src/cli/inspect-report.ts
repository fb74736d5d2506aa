/** An inspection as text for people. */
import { formatBytes } from './format.ts';
import type { Inspection } from './inspect-facts.ts';
import { renderTable } from './inspect-table.ts';

/** Names of tensors that are listed before the rest is only counted. */
const LISTED = 8;

export function inspectionReport(inspection: Inspection): string {
  const { tensors, memory, taps, compatibility } = inspection;
  const overview: (readonly [string, string])[] = [
    [inspection.role, `${inspection.name} · ${inspection.format}`],
    ...Object.entries(inspection.shape).map(([name, value]) => [name, String(value)] as const),
    ['parameters', count(inspection.parameters)],
    [
      'stored',
      `${formatBytes(inspection.storedBytes)} · ${Object.entries(tensors.dtypes)
        .map(([dtype, n]) => `${n} ${dtype}`)
        .join(', ')}`,
    ],
    [
      'in memory',
      Object.entries(memory)
        .map(([format, bytes]) => `${format} ${formatBytes(bytes)}`)
        .join(' · '),
    ],
    ['cache', cacheWords(inspection)],
    [
      'tensors',
      `${tensors.claimed} used, ${tensors.missing.length} missing, ${tensors.unclaimed.length} not used, ${tensors.misshapen.length} of another shape`,
    ],
  ];
  const sections = [renderTable(overview)];
  const list = (title: string, names: readonly string[]) => {
    if (names.length === 0) return;
    const more = names.length > LISTED ? [`  and ${names.length - LISTED} more`] : [];
    sections.push([`${title}:`, ...names.slice(0, LISTED).map((name) => `  ${name}`), ...more].join('\n'));
  };
  list('missing', tensors.missing);
  list('not used', tensors.unclaimed);
  list('of another shape', tensors.misshapen);
  if (taps.length > 0) {
    const id = (value: number | null) => (value === null ? '–' : String(value));
    sections.push(
      renderTable(
        taps.map(({ zlab, huggingFace, speculators, meaning }) => [String(zlab), id(huggingFace), id(speculators), meaning]),
        ['z-lab id', 'hidden_states[i]', 'vLLM id', 'tap'],
      ),
    );
  }
  if (compatibility !== null) {
    sections.push(
      renderTable(
        compatibility.facts.map(({ name, drafter, target, agrees }) => [
          name,
          String(drafter),
          String(target),
          agrees ? 'yes' : 'NO',
        ]),
        ['with the target', 'drafter', 'target', 'fits'],
      ),
      compatibility.problem === null
        ? `It fits ${compatibility.target}.`
        : `It does not fit ${compatibility.target}: ${compatibility.problem}.`,
    );
  }
  return `${sections.join('\n\n')}\n`;
}

function cacheWords({ cacheBytesPerPosition, cacheBytesPerSequence }: Inspection): string {
  const formats = Object.entries(cacheBytesPerPosition);
  const perPosition = [...new Set(formats.map(([, bytes]) => bytes))]
    .map((bytes) => {
      const alike = formats.filter(([, own]) => own === bytes).map(([format]) => format);
      return `${alike.join(', ')} ${formatBytes(bytes)}`;
    })
    .join(' · ');
  const perSequence = cacheBytesPerSequence === 0 ? '' : `; ${formatBytes(cacheBytesPerSequence)} per sequence`;
  return `${perPosition} per position${perSequence}`;
}

/** `134.5 M` */
function count(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toPrecision(4)} G`;
  return value >= 1e6 ? `${(value / 1e6).toPrecision(4)} M` : String(value);
}
