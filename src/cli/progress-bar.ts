/** A line on a terminal that shows how far long work is; on anything but a terminal, a line at the start and at the end. */
const WIDTH = 28;
const REFRESH_MS = 80;

export interface ProgressBar {
  update(done: number, total: number): void;
  /** Clears the line; call it when the work has ended, however it did. */
  end(): void;
}

/**
 * @param label says what is being done
 * @param unit formats a quantity
 */
export function createProgressBar(
  label: string,
  unit: (amount: number) => string,
  stream: NodeJS.WriteStream = process.stderr,
): ProgressBar {
  let drawnAt = 0;
  let announced = false;
  const started = performance.now();
  return {
    update(done, total) {
      const now = performance.now();
      if (!stream.isTTY) {
        if (!announced) stream.write(`${label}: ${unit(total)} …\n`);
        announced = true;
        return;
      }
      if (now - drawnAt < REFRESH_MS && done < total) return;
      drawnAt = now;
      const share = total === 0 ? 1 : done / total;
      const filled = Math.round(share * WIDTH);
      const seconds = (now - started) / 1000;
      const left = share > 0.02 ? ` · ${Math.ceil((seconds / share) * (1 - share))} s left` : '';
      stream.write(
        `\r\x1b[2K${label} ${'━'.repeat(filled)}\x1b[2m${'━'.repeat(WIDTH - filled)}\x1b[0m ${Math.round(share * 100)} % · ` +
          `${unit(done)} of ${unit(total)}${left}`,
      );
    },
    end() {
      if (stream.isTTY && drawnAt > 0) stream.write('\r\x1b[2K');
    },
  };
}
