/** Columns that line up, numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const text = [header, ...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? format(cell) : cell)))];
  const widths = header.map((_, column) => Math.max(...text.map((row) => (row[column] ?? '').length)));
  const lines = text.map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  );
  return [lines[0], widths.map((width) => '─'.repeat(width)).join('──'), ...lines.slice(1)].join('\n');
}

function format(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}
