import { expect, it } from 'vitest';
import { commandLine } from '../../../../src/validate/report/provenance.ts';

it('tells a command as it can be typed, without keys', () => {
  expect(commandLine(['bench-serve', '--api-key', 'secret', '--model', 'a b', '--api-key=secret', '--json'])).toBe(
    "blockdraft bench-serve --api-key … --model 'a b' --api-key=… --json",
  );
});

it('leaves out keys that are variables of a load test', () => {
  const words = ['load', 'smoke', '-e', 'API_KEY=secret', '-eAPI_KEY=secret', '--env=API_KEY=secret', '-e', 'MODEL=API_KEY=x'];
  expect(commandLine(words)).toBe('blockdraft load smoke -e API_KEY=… -eAPI_KEY=… --env=API_KEY=… -e MODEL=API_KEY=x');
});
