/** A running mean over rounds, whose uncertainty is that between requests: rounds of one answer resemble each other. */

interface Cluster {
  sum: number;
  count: number;
}

/** 97.5 % quantile of the standard normal distribution. */
const Z_95 = 1.959963984540054;

export interface MeanEstimate {
  readonly mean: number;
  /** Values it is made of. */
  readonly count: number;
  /** Requests that have ended and gave values. */
  readonly requests: number;
  /** 95 % interval, by normal approximation over requests; null below two ended ones. */
  readonly interval: readonly [low: number, high: number] | null;
}

/** Memory grows with requests under way, not with their number. */
export class ClusteredMean {
  readonly #open = new Map<string, Cluster>();
  #sum = 0;
  #count = 0;
  #requests = 0;
  /** Sums over ended requests of sum², sum·count and count². */
  #squares = 0;
  #products = 0;
  #countSquares = 0;
  #endedCount = 0;

  add(request: string, value: number): void {
    const cluster = this.#open.get(request) ?? { sum: 0, count: 0 };
    cluster.sum += value;
    cluster.count += 1;
    this.#open.set(request, cluster);
    this.#sum += value;
    this.#count += 1;
  }

  /** No more values of this request will come. */
  end(request: string): void {
    const cluster = this.#open.get(request);
    if (cluster === undefined) return;
    this.#open.delete(request);
    this.#requests += 1;
    this.#endedCount += cluster.count;
    this.#squares += cluster.sum ** 2;
    this.#products += cluster.sum * cluster.count;
    this.#countSquares += cluster.count ** 2;
  }

  /** Null without values. */
  estimate(): MeanEstimate | null {
    if (this.#count === 0) return null;
    const mean = this.#sum / this.#count;
    return { mean, count: this.#count, requests: this.#requests, interval: this.#interval(mean) };
  }

  /** Of a ratio of sums over requests: Cochran, Sampling Techniques, section 6.3. */
  #interval(mean: number): readonly [number, number] | null {
    const m = this.#requests;
    if (m < 2) return null;
    const residuals = Math.max(this.#squares - 2 * mean * this.#products + mean ** 2 * this.#countSquares, 0);
    const error = Math.sqrt((residuals * m) / (m - 1)) / this.#endedCount;
    return [mean - Z_95 * error, mean + Z_95 * error];
  }
}
