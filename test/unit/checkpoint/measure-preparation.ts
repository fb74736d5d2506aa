/** Child process of the memory test: prepares a model folder and prints by how many bytes the peak of its memory rose. */
import { openCheckpoint } from '../../../src/checkpoint/checkpoint.ts';
import { prepareWeights } from '../../../src/checkpoint/prepare-weights.ts';

const [folder, cacheFile] = process.argv.slice(2) as [string, string];
const checkpoint = await openCheckpoint(folder);
const plan = checkpoint.names.map((name) => ({
  name,
  source: name,
  kind: 'linear' as const,
  shape: checkpoint.tensor(name).shape,
}));
const before = process.resourceUsage().maxRSS;
await prepareWeights({ checkpoint, plan, format: 'int4', cacheFile });
process.stdout.write(String((process.resourceUsage().maxRSS - before) * 1024));
