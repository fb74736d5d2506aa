/** Columns as wide as their widest cell, two spaces apart; a heading is underlined. */
export function renderTable(rows: readonly (readonly string[])[], heading?: readonly string[]): string {
  const all = heading === undefined ? rows : [heading, ...rows];
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const lines = rows.map(line);
  return (heading === undefined ? lines : [line(heading), widths.map((width) => '─'.repeat(width)).join('  '), ...lines]).join(
    '\n',
  );
}
