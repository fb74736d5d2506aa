import { describe, expect, it } from 'vitest';
import { type RowSource, selectRows } from '../../../src/checkpoint/row-source.ts';

/** Rows whose values are their row number, and a list of what was read. */
function countingSource(rows: number, columns: number): { source: RowSource; reads: [number, number][] } {
  const reads: [number, number][] = [];
  const source: RowSource = {
    rows,
    columns,
    async read(start, end, target) {
      reads.push([start, end]);
      for (let row = start; row < end; row++) target.fill(row, (row - start) * columns, (row - start + 1) * columns);
    },
  };
  return { source, reads };
}

describe('selectRows', () => {
  it('reads rows that lie close together at once, and skips wide gaps', async () => {
    const { source, reads } = countingSource(1000, 1024);
    const target = new Float32Array(5 * 1024);
    await selectRows(source, Int32Array.of(3, 4, 9, 500, 501), 'w').read(0, 5, target);
    expect(reads).toEqual([
      [3, 10],
      [500, 502],
    ]);
    expect([0, 1, 2, 3, 4].map((row) => target[row * 1024 + 1023])).toEqual([3, 4, 9, 500, 501]);
  });

  it('reads only what part of the rows needs', async () => {
    const { source, reads } = countingSource(1000, 1024);
    const target = new Float32Array(2 * 1024);
    await selectRows(source, Int32Array.of(700, 20, 10, 11), 'w').read(1, 3, target);
    expect(reads).toEqual([
      [20, 21],
      [10, 11],
    ]);
    expect([target[0], target[1024]]).toEqual([20, 10]);
  });
});
