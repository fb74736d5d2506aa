/** What a result means, in sentences. */
import type { BenchResult } from './result-schema.ts';

export function verdictLines({ gains, break_even, knees, lossless, points, errors, complete }: BenchResult): readonly string[] {
  const lines: string[] = [];
  for (const [variant, at] of Object.entries(break_even)) {
    const own = gains.filter((gain) => gain.variant === variant);
    lines.push(...gainLines(variant, at, own));
  }
  for (const [variant, at] of Object.entries(knees)) {
    lines.push(`Knee of ${variant}: ${clients(at)} (most throughput for the wait).`);
  }
  if (lossless.compared > 0) {
    lines.push(
      lossless.differing.length === 0
        ? `Lossless: ${lossless.compared} answers are those of plain decoding.`
        : `NOT lossless: ${lossless.differing.length} of ${lossless.compared} answers differ from plain decoding, first ${lossless.differing[0]?.prompt}.`,
    );
  }
  const failures = points.reduce((sum, { failed }) => sum + failed, 0);
  if (failures > 0) lines.push(`${failures} requests failed: ${errors.slice(0, 3).join('; ')}`);
  if (!complete) lines.push('Interrupted: later points are missing.');
  return lines;
}

/** @param at where it stops to pay; null for nowhere */
function gainLines(variant: string, at: number | null, gains: BenchResult['gains']): string[] {
  const [first] = gains;
  const last = gains.at(-1);
  if (first?.gain.value == null) return [];
  const unclear = gains.filter(({ gain: { low, high } }) => low !== null && high !== null && low <= 1 && high >= 1);
  const noise =
    unclear.length === 0 ? [] : [`${variant}: no more than noise at ${loads(unclear)}; more prompts or repeats would tell.`];
  const best = `${first.gain.value.toFixed(2)} × at ${clients(first.max_concurrency)}`;
  if (at === null) {
    const end =
      last === first || last?.gain.value == null ? '' : `, ${last.gain.value.toFixed(2)} × at ${clients(last.max_concurrency)}`;
    const losing = gains.filter(({ gain: { value } }) => value !== null && value <= 1);
    const where = losing.length === 0 ? 'every load measured' : `the highest load, but not at ${loads(losing)}`;
    return [`${variant} pays at ${where}: ${best}${end}.`, ...noise];
  }
  if (at > first.max_concurrency) return [`${variant} pays up to about ${at.toFixed(1)} clients: ${best}.`, ...noise];
  return [`${variant} pays at no load measured: ${best}.`, ...noise];
}

function loads(gains: BenchResult['gains']): string {
  const list = gains.map(({ max_concurrency }) => max_concurrency);
  return list.length === 1 ? clients(list[0]!) : `${list.join(', ')} clients`;
}

export function clients(count: number): string {
  return count === 1 ? '1 client' : `${count} clients`;
}
