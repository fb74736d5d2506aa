/** A page that needs nothing from outside. */
import { escapeHtml } from './escape-html.ts';

const STYLE = `
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; margin: 0 auto; max-width: 1040px; padding: 28px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 2px; } h2 { font-size: 18px; margin: 34px 0 8px; border-bottom: 1px solid #ddd; padding-bottom: 4px; }
p { max-width: 80ch; } .muted { color: #666; } ul.verdict { padding-left: 20px; } ul.verdict li { margin: 3px 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 10px; margin: 14px 0; }
.card { border: 1px solid #ddd; border-radius: 6px; padding: 9px 12px; } .card b { display: block; font-size: 21px; } .card span { color: #666; font-size: 13px; }
.bad { color: #b00020; } .good { color: #006b3c; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(400px, 1fr)); gap: 16px; }
figure { margin: 0; } figcaption { font-weight: 600; font-size: 14px; margin-bottom: 2px; } svg { width: 100%; height: auto; }
.grid { stroke: #ececec; } .axis { stroke: #999; } .guide { stroke: #999; stroke-dasharray: 3 3; } .line { fill: none; stroke-width: 1.8; } .bar { stroke-width: 1.2; }
.tick { font-size: 11px; fill: #555; } .label { font-size: 12px; fill: #333; }
.legend { font-size: 13px; display: flex; flex-wrap: wrap; gap: 4px 14px; padding-left: 48px; } .legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13.5px; margin: 8px 0; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; } th:first-child, td:first-child { text-align: left; }
th { color: #555; font-weight: 600; } code { font-size: 13px; }
`;

/** @param sections HTML */
export function page(title: string, sections: readonly string[]): string {
  return [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title>`,
    `<style>${STYLE}</style></head><body>`,
    ...sections,
    '</body></html>',
    '',
  ].join('\n');
}

export function htmlTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], tag: 'th' | 'td') =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`;
  return `<div class="scroll"><table><thead>${cells(header, 'th')}</thead><tbody>${rows.map((row) => cells(row, 'td')).join('')}</tbody></table></div>`;
}
