/** What a result means, in sentences. */
import type { BenchResult } from './result-schema.ts';

export function verdictLines({ gains, break_even, knees, lossless, points, errors, complete }: BenchResult): readonly string[] {
  const lines: string[] = [];
  for (const [variant, at] of Object.entries(break_even)) {
    const own = gains.filter((gain) => gain.variant === variant);
    const first = own[0];
    if (first?.gain.value == null) continue;
    const best = `${first.gain.value.toFixed(2)} × at ${clients(first.max_concurrency)}`;
    const last = own.at(-1);
    if (at === null) {
      const end =
        last === first || last?.gain.value == null
          ? ''
          : `, ${last.gain.value.toFixed(2)} × at ${clients(last.max_concurrency)}`;
      const losing = own.filter(({ gain: { value } }) => value !== null && value <= 1);
      const where = losing.length === 0 ? 'every load measured' : `the highest load, but not at ${loads(losing)}`;
      lines.push(`${variant} pays at ${where}: ${best}${end}.`);
    } else if (at <= first.max_concurrency) {
      lines.push(`${variant} does not pay, not even at ${clients(first.max_concurrency)}: ${first.gain.value.toFixed(2)} ×.`);
    } else {
      lines.push(`${variant} pays up to about ${at.toFixed(1)} clients: ${best}.`);
    }
    const unclear = own.filter(({ gain: { low, high } }) => low !== null && high !== null && low <= 1 && high >= 1);
    if (unclear.length > 0) {
      lines.push(`${variant}: within noise of no gain at ${loads(unclear)}; more prompts or repeats would tell.`);
    }
  }
  for (const [variant, at] of Object.entries(knees))
    lines.push(`Knee of ${variant}: ${clients(at)} (most throughput for the wait).`);
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

function loads(gains: BenchResult['gains']): string {
  const list = gains.map(({ max_concurrency }) => max_concurrency);
  return list.length === 1 ? clients(list[0]!) : `${list.join(', ')} clients`;
}

function clients(count: number): string {
  return count === 1 ? '1 client' : `${count} clients`;
}
