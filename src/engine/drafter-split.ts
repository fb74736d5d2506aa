/** Which drafter serves a request that names none: one by weight, the same one whenever the request is repeated. */
import { createHash } from 'node:crypto';
import { AppError } from '../core/app-error.ts';
import type { GenerateRequest } from './engine.ts';

/** A drafter's name, or `none`, and its share. */
export type SplitWeights = ReadonlyMap<string, number>;

const TWO_48 = 2 ** 48;

/**
 * @param text `a=0.8,b=0.2`; weights need not add up to 1
 * @throws AppError `invalid_config` when it is written differently
 */
export function parseSplit(text: string): SplitWeights {
  const weights = new Map<string, number>();
  for (const part of text.split(',')) {
    const [, name, weight] = /^\s*([\w.-]+)=(\d+(?:\.\d+)?|\.\d+)\s*$/.exec(part) ?? [];
    if (name === undefined || weights.has(name)) {
      throw new AppError(
        'invalid_config',
        `Expected a split such as a=0.8,b=0.2 with each drafter once, got ${JSON.stringify(text)}; correct --split`,
      );
    }
    weights.set(name, Number(weight));
  }
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  if (!(total > 0)) {
    throw new AppError('invalid_config', `Expected a weight above 0, got ${JSON.stringify(text)}; correct --split`);
  }
  return new Map([...weights].map(([name, weight]) => [name, weight / total]));
}

/** What a check has to know of a drafter. */
interface NamedDrafter {
  readonly name: string;
  readonly synthetic: boolean;
}

/**
 * @param option where the names come from
 * @throws AppError `invalid_config` when a name is none of the drafters'
 */
export function checkKnown(option: string, names: Iterable<string>, drafters: readonly Pick<NamedDrafter, 'name'>[]): void {
  const known = drafters.map(({ name }) => name);
  for (const name of names) {
    if (known.includes(name)) continue;
    throw new AppError(
      'invalid_config',
      `Expected drafters of ${known.join(', ')} in ${option}, got ${name}; load it with --drafter or correct ${option}`,
    );
  }
}

/**
 * @param option where the names come from
 * @throws AppError `invalid_config` when a name is none of the drafters', or one of them does not draft for the target
 */
export function checkCompared(option: string, names: Iterable<string>, drafters: readonly NamedDrafter[]): void {
  for (const name of names) {
    checkKnown(option, [name], drafters);
    if (drafters.some(({ synthetic }) => synthetic)) {
      throw new AppError(
        'invalid_config',
        `Expected drafters that the target verifies for ${option}, got a synthetic one; leave out ${option} or --synthetic-acceptance`,
      );
    }
  }
}

/** The drafter for a request that names none. */
export function pickDrafter(weights: SplitWeights, request: GenerateRequest): string {
  const names = [...weights.keys()];
  const point = requestFraction(request, 'split');
  let reached = 0;
  for (const [name, weight] of weights) {
    reached += weight;
    if (point < reached) return name;
  }
  // Weights may add up to a little less than 1 in floating point.
  return names.findLast((name) => weights.get(name)! > 0) as string;
}

/**
 * A number from 0 to 1 that is drawn from the seed and the prompt: equal requests with equal seeds get equal numbers, and a
 * seed that all requests share does not send all of them the same way.
 * @param purpose draws for different purposes are independent
 */
export function requestFraction({ sampling, promptTokens }: GenerateRequest, purpose: string): number {
  const hash = createHash('sha256')
    .update(`${purpose}\n${sampling.seed}\n${promptTokens.join(',')}`)
    .digest();
  return hash.readUIntBE(0, 6) / TWO_48;
}
