/** Student's t distribution, by the incomplete beta function (Press et al. 2007, sections 6.1, 6.4 and 6.14.3). */

/** P(T > t) for T with `freedom` degrees of freedom. */
export function upperTail(t: number, freedom: number): number {
  if (t === Number.POSITIVE_INFINITY) return 0;
  if (t === Number.NEGATIVE_INFINITY) return 1;
  const tail = incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
  return t >= 0 ? tail : 1 - tail;
}

/** The t that is exceeded with this probability (below one half). */
export function criticalValue(tail: number, freedom: number): number {
  let low = 0;
  let high = 1;
  while (upperTail(high, freedom) > tail) high *= 2;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (upperTail(middle, freedom) > tail) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** I_x(a, b), regularised. */
function incompleteBeta(a: number, b: number, x: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x));
  return x < (a + 1) / (a + b + 2)
    ? (front * continuedFraction(a, b, x)) / a
    : 1 - (front * continuedFraction(b, a, 1 - x)) / b;
}

/** Lentz's method. */
function continuedFraction(a: number, b: number, x: number): number {
  const TINY = 1e-300;
  const EPSILON = 1e-15;
  const away = (value: number) => (Math.abs(value) < TINY ? TINY : value);
  let c = 1;
  let d = 1 / away(1 - ((a + b) * x) / (a + 1));
  let result = d;
  for (let m = 1; m <= 500; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    result *= d * c;
    if (Math.abs(d * c - 1) < EPSILON) break;
  }
  return result;
}

/** Lanczos's approximation. */
function logGamma(x: number): number {
  const COEFFICIENTS = [
    676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905, -0.13857109526572012,
    9.984369578019572e-6, 1.5056327351493116e-7,
  ];
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const y = x - 1;
  const sum = COEFFICIENTS.reduce((total, coefficient, i) => total + coefficient / (y + i + 1), 0.9999999999998099);
  const t = y + COEFFICIENTS.length - 0.5;
  return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum);
}
