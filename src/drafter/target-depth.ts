import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../checkpoint/read-json.ts';

const depth = z.number().int().positive().optional();
const depthSchema = z.looseObject({
  num_hidden_layers: depth,
  text_config: z.looseObject({ num_hidden_layers: depth }).optional(),
});

/** Decoder layers of the target in a folder, for drafters whose config leaves them to it; null when that says nothing. */
export function targetDepth(folder: string): number | null {
  const file = join(folder, 'config.json');
  if (!existsSync(file)) return null;
  const { num_hidden_layers: layers, text_config: text } = readJson(file, depthSchema);
  return layers ?? text?.num_hidden_layers ?? null;
}
