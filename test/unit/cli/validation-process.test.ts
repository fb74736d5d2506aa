import { describe, expect, it } from 'vitest';
import { jobCommand, type ServedModels } from '../../../src/cli/validation-process.ts';
import type { ValidationTask } from '../../../src/server/validation/validation-runner.ts';

const SERVED: ServedModels = {
  target: '/models/target',
  device: 'cpu',
  threads: 4,
  finalTap: ['pre', 'new=post'],
  allowUnclaimed: true,
};
const drafters = ['old', 'new'].map((name) => ({ name, kind: 'dflash', folder: `/models/${name}` }));

function words(kind: ValidationTask['kind'], of = drafters): string {
  return jobCommand({ kind, drafters: of, prompts: null, settings: {} }, SERVED, '/tmp').join(' ');
}

describe('the command of a job', () => {
  it('reads drafters as the server does', () => {
    expect(words('compare')).toMatch(
      /--final-tap pre --final-tap new=post --allow-unclaimed .*old=\/models\/old new=\/models\/new$/,
    );
    expect(words('validate', [drafters[0]!])).toMatch(/--final-tap pre --allow-unclaimed/);
  });

  it('says of the one drafter of a diagnosis or a recording what is said of it', () => {
    expect(words('diagnose', [drafters[1]!])).toMatch(/--final-tap post --allow-unclaimed/);
    expect(words('record', [drafters[0]!])).toMatch(/--final-tap pre --allow-unclaimed/);
  });

  it('says nothing of what the server was told nothing of', () => {
    const plain = { ...SERVED, finalTap: [], allowUnclaimed: false };
    const command = jobCommand({ kind: 'compare', drafters, prompts: null, settings: {} }, plain, '/tmp').join(' ');
    expect(command).not.toMatch(/final-tap|allow-unclaimed/);
  });
});
