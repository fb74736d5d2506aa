/**
 * Collections whose size is checked before what is in them, so that a huge wrong one costs one issue and not a million. The second
 * stage repeats the bounds, because a JSON schema is made of it alone.
 */
import { z } from 'zod';

/** A list of `min` to `max` items. */
export function boundedArray<Item extends z.ZodType>(item: Item, max: number, min = 1) {
  return z
    .custom<readonly unknown[]>((value) => Array.isArray(value) && value.length >= min && value.length <= max)
    .pipe(z.array(item).min(min).max(max));
}

/** An object of up to `max` entries. */
export function boundedRecord<Value extends z.ZodType>(keys: RegExp, value: Value, max: number) {
  return z
    .custom<Readonly<Record<string, unknown>>>((object) => isPlainObject(object) && Object.keys(object).length <= max)
    .pipe(z.record(z.string().regex(keys), value).meta({ maxProperties: max }));
}

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
