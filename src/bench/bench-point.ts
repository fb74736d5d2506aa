/** What is measured: a way to draft, at a load, at a temperature, behind a context. */
import { AppError } from '../core/app-error.ts';
import type { ServerFacts } from './server-client.ts';

export const PLAIN = 'none';

export interface Variant {
  /** `none`, `dflash`, `dflash@3`: drafter and longest draft. */
  readonly name: string;
  /** Null leaves both to the server. */
  readonly drafter: string | null;
  readonly draftTokens: number | null;
}

/** Along which axis of the report a point lies. */
export type Axis = 'load' | 'temperature' | 'context';

export interface BenchPoint {
  readonly axis: Axis;
  readonly variant: Variant;
  readonly concurrency: number;
  readonly temperature: number;
  /** Tokens, about, of text before the question; 0 for the question alone. */
  readonly contextLength: number;
}

export function pointKey({ axis, variant, concurrency, temperature, contextLength }: BenchPoint): string {
  return [axis, variant.name, concurrency, temperature, contextLength].join(' ');
}

/**
 * @param wanted drafters by name; null: plain decoding and the server's default
 * @param draftTokens longest drafts; empty: the server's own
 * @throws AppError `invalid_config` for what the server does not have
 */
export function benchVariants(
  { drafters, url }: Pick<ServerFacts, 'drafters' | 'url'>,
  wanted: readonly string[] | null,
  draftTokens: readonly number[],
): readonly Variant[] {
  if (drafters === null) {
    if (wanted === null && draftTokens.length === 0) return [{ name: 'server', drafter: null, draftTokens: null }];
    throw new AppError(
      'invalid_config',
      `Expected ${url} to list drafters for --drafters and --draft-tokens, got no /v1/drafters`,
    );
  }
  const fallback = drafters.filter((drafter) => drafter.default).map(({ name }) => name);
  const names = [...new Set(wanted ?? [PLAIN, ...fallback])];
  return names.flatMap((name): Variant[] => {
    if (name === PLAIN) return [{ name, drafter: PLAIN, draftTokens: null }];
    const served = drafters.find((drafter) => drafter.name === name);
    if (served === undefined) {
      const known = [...new Set([PLAIN, ...drafters.map((drafter) => drafter.name)])].join(', ');
      throw new AppError('invalid_config', `Expected drafters of the server (${known}), got ${name}; change --drafters`);
    }
    const tooLong = draftTokens.find((tokens) => tokens > served.max_draft_tokens);
    if (tooLong !== undefined) {
      throw new AppError(
        'invalid_config',
        `Expected draft lengths of at most ${served.max_draft_tokens} for ${name}, got ${tooLong}; start the server with longer --draft-tokens`,
      );
    }
    if (draftTokens.length === 0) return [{ name, drafter: name, draftTokens: null }];
    return draftTokens.map((tokens) => ({ name: `${name}@${tokens}`, drafter: name, draftTokens: tokens }));
  });
}

export interface Axes {
  readonly concurrency: readonly number[];
  /** The first one is that of the load axis; the others are measured at the first concurrency. */
  readonly temperatures: readonly number[];
  readonly contextLengths: readonly number[];
}

/** All variants at all loads; temperatures and contexts one by one, for variants that draft. */
export function benchPoints(
  variants: readonly Variant[],
  { concurrency, temperatures, contextLengths }: Axes,
): readonly BenchPoint[] {
  const [temperature = 0] = temperatures;
  const [contextLength = 0] = contextLengths;
  const [quiet = 1] = concurrency;
  const drafting = variants.filter(({ name }) => name !== PLAIN);
  const base = { temperature, contextLength, concurrency: quiet };
  return [
    ...concurrency.flatMap((clients) =>
      variants.map((variant): BenchPoint => ({ ...base, axis: 'load', variant, concurrency: clients })),
    ),
    ...temperatures
      .slice(1)
      .flatMap((other) =>
        drafting.map((variant): BenchPoint => ({ ...base, axis: 'temperature', variant, temperature: other })),
      ),
    ...contextLengths
      .slice(1)
      .flatMap((other) => drafting.map((variant): BenchPoint => ({ ...base, axis: 'context', variant, contextLength: other }))),
  ];
}
