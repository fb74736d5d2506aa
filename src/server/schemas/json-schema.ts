import { z } from 'zod';

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * The JSON schema of what a zod schema hands on. Bodies are given this way too: what is checked by hand before an element is
 * looked at (see `bounded.ts`) says nothing of the elements.
 */
export function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  return rest;
}
