import { expect, it } from 'vitest';
import { commandLine } from '../../../../src/validate/report/provenance.ts';

it('tells a command as it can be typed, without keys', () => {
  expect(commandLine(['bench-serve', '--api-key', 'secret', '--model', 'a b', '--api-key=secret', '--json'])).toBe(
    "blockdraft bench-serve --api-key … --model 'a b' --api-key=… --json",
  );
});
